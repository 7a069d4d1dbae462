"""Rules beyond the API: what Prepare would refuse, and who may share a GPU."""

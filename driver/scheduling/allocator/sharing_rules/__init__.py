"""Rules beyond the API: configuration that Prepare would refuse, and sharing of GPUs."""

"""Records of prepared claims on disk, and the claim as the API server has it."""

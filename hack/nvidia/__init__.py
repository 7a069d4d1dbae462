"""NVIDIA's real programs, fetched for the tests that want them."""

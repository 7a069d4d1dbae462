"""Ration: a Kubernetes Dynamic Resource Allocation driver for NVIDIA GPUs that shares."""

"""Reads facts off machines with NVIDIA GPUs."""

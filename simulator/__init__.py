"""Simulated GPUs behind libnvidia-ml.so.1: one machine model, one node process, C clients (D16)."""

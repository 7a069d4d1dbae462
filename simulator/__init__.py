"""Simulated GPUs behind libnvidia-ml.so.1: one machine model, one node process, thin C clients."""

"""Preemption: who may be evicted, and which victims cost least."""

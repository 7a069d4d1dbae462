"""Queues of the scheduler: order of pending workloads, usage, and Queue status."""

"""Metric values of pending workloads and queues. Pure."""

"""Queues: quota, fair sharing, order and status."""

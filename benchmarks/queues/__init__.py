"""Queues, gangs and preemption: how long a decision takes."""

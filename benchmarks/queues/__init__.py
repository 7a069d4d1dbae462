"""Queues, gangs and preemption: whose turn it is, how fairly, and how long a decision takes."""

"""Queues: fairness on a trace, gangs, plans of preemption."""

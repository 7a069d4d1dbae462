"""Whose turn it is: fairness on a trace, gangs, plans of preemption."""

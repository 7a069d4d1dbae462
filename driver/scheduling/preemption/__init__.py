"""Preemption: eligibility of victims, and the victims that cost least."""

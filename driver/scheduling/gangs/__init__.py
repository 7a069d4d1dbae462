"""Gangs: pods that are scheduled all or nothing."""

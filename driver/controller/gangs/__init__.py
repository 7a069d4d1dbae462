"""Gangs: pods that run together or not at all (D7)."""

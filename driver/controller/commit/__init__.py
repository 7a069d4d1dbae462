"""Writes to the API server: allocations, conditions, events."""

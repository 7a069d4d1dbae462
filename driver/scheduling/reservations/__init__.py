"""Reservations: devices held for announced workloads."""

"""Reservations: devices for work that is coming (D7)."""

"""Reflectors, their stores, and the event handlers that enqueue keys."""

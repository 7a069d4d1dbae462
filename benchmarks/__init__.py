"""Measurements, printed and recorded; nothing here asserts a time."""

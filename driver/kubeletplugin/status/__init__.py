"""Readiness of claims in status.devices."""

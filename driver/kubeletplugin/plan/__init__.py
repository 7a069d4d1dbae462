"""Turns granted devices and configuration into steps. Pure; one file per sharing mode."""

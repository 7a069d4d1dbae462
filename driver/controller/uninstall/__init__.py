"""Helm's uninstall hooks."""

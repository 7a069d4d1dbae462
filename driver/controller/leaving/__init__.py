"""Uninstalling: what the chart's hooks do to the API server before and after the release goes."""

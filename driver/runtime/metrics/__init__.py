"""Metric families, their collector, and the HTTP server that exposes them."""

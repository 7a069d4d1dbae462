"""Tens of thousands of claims through one plugin, while things break, and its memory watched."""

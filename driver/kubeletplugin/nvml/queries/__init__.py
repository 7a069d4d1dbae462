"""Queries of one GPU's state, one topic per file."""

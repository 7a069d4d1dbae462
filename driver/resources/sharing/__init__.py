"""Sharing configuration of claims, and when two of them are compatible on one GPU."""

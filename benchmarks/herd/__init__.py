"""Hundreds of plugins of one cluster that start at the same moment."""

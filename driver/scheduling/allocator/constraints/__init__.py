"""Constraints among the devices of one solution, and the bounds that prune the search."""

"""Per-node results: their computation, ranking and cache."""

"""How well GPUs are given out: traces through the allocator, beside policies from elsewhere."""

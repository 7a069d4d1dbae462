"""The DRA allocator: requests, candidates, search, result."""

"""What waits for its turn, and how it is served (D4, D7)."""

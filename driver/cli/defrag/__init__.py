"""`ration defrag`."""

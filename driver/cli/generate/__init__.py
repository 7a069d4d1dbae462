"""`ration generate`."""

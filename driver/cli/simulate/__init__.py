"""`ration simulate`."""

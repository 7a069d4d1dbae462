"""`ration explain`."""

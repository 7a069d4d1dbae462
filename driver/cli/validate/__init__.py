"""`ration validate`."""

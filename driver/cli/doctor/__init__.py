"""`ration doctor`."""

"""`ration must-gather`."""

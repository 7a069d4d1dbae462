"""GPU memory and activity per claim."""

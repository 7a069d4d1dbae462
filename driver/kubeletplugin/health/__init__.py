"""GPU health: events and polls to taints, and resets."""

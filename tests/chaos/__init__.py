"""Real pods on a real cluster come and go while everything around them breaks."""

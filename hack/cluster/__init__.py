"""Real Kubernetes on one Linux machine, without Docker."""

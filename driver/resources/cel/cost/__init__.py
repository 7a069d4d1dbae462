"""Cost estimation of CEL expressions, as the API server limits it."""

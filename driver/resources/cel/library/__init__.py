"""Kubernetes' CEL function libraries, one per file."""

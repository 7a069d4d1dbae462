"""Manifests from flags. Pure."""

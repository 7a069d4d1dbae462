"""Offline scheduling of a dump, of manifests or of a trace. Pure."""

"""Decodes long lists of the API server in bulk, for the parsers of their kinds."""

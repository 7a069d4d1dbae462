"""Serving certificates of the webhook: their source, and the authority that signs them."""

"""A threaded HTTPS server whose certificates are reloaded."""

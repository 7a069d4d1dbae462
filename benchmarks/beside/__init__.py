"""Our plugin and the least Go driver on upstream's helper, in turn, before one API server."""

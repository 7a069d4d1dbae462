"""Data sources of commands: the controller's JSON API, the API server, or a dump."""

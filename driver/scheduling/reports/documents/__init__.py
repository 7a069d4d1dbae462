"""Documents of the JSON API, one kind per file."""

"""The read model of the JSON API and the CLI."""

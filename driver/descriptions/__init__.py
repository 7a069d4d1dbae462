"""The description of each reason, as the reference page and the CLI print it."""

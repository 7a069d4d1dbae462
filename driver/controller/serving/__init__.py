"""The door of what this room serves over HTTP: the webhook and the page."""

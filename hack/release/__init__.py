"""What is handed to users: `make release`."""

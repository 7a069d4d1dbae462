"""The scheduling loop and cycle."""

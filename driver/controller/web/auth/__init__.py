"""Authentication and authorization of the page."""

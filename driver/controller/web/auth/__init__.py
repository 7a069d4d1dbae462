"""Who may read the page."""

"""Values of the controller's metrics, computed at scrape time."""

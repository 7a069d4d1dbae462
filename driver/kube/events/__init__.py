"""Events: aggregation into series, and the recorder."""

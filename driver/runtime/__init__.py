"""Common parts of every process: settings, lifecycle, logs, metrics, files."""

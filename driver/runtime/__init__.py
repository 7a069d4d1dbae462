"""What every process has: settings, lifecycle, logs, metrics, files."""

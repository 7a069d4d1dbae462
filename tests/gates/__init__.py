"""Gates of production readiness, each with the command that shows it."""

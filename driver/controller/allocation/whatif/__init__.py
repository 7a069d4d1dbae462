"""What would have to go so that a workload fits. Pure."""

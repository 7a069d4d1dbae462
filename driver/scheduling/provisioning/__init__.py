"""Planning of nodes to request from an autoscaler."""

"""The provisioner: requests nodes from an autoscaler and tracks them."""

"""What the plugin's metrics say of GPUs and claims, worked out of values. Pure."""

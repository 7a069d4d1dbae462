"""Values of the plugin's metrics per GPU and claim. Pure."""

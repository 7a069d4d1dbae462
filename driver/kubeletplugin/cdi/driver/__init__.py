"""Files of the NVIDIA driver that containers get."""

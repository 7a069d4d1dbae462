"""Files of a node: atomic writes, locks, mounts, and the NVIDIA driver's files."""

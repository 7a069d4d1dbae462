"""From discovered GPUs to devices, taints and ResourceSlices."""

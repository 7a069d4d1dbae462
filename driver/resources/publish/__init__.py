"""Conversion of discovered GPUs to devices, taints and ResourceSlices."""

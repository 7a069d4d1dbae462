"""ResourceSlices of the node: built, compared, written, and held back on conflicts."""

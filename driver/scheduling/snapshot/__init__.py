"""The cluster as scheduling sees it: pools, allocated devices, pods, and overlays on top."""

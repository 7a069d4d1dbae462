"""The node's figures: Prepare, memory, start, and a pod's way to Running."""

"""The kubelet plugin: makes a decision real on the node, and undoes it."""

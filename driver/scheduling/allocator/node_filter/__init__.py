"""kube-scheduler's filter plugins that decide on a node, under their own names (1.36, 1.37)."""

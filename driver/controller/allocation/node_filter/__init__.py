"""kube-scheduler's filters that decide on a node (1.36, 1.37): a module a plugin, named like it."""

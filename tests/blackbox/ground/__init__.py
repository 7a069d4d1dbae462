"""The ground the cases are tried on: a cluster, a node whose plugin stands behind the proxy, pods.

kube-scheduler allocates, whoever is tried: the one allocator that every driver has, and then the
plugin is the only part of a driver that is in play. So the cluster is brought up with no driver of
its own, and Ration runs as it does on nodes with `--allocator scheduler`.
"""

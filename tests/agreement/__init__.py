"""A campaign of plain workloads: the controller and kube-scheduler agree, whatever happens."""

"""A campaign of plain workloads: does the controller agree with kube-scheduler, whatever happens?"""

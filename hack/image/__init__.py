"""The driver's container image, made without Docker: this machine's Python and the locked wheels.

deploy/images/Dockerfile makes the one that is published; this one is for the local cluster and for
machines without Docker. Both hold the same: the entry points, the locked dependencies, no shell.
"""

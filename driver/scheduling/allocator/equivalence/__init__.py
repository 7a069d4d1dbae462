"""Signatures under which devices, nodes and workloads are interchangeable."""

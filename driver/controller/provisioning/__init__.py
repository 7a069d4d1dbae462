"""Nodes on demand: which nodes to ask an autoscaler for, and what becomes of them. Pure."""

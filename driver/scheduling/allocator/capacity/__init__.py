"""Free capacity of nodes, and who holds what is allocated."""

"""Free capacity of nodes, and the holders of allocated devices."""

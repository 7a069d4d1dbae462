"""Files of the node, for every process that runs there."""

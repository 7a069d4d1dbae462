"""`ration must-gather`: what a maintainer needs to see of a cluster, in one archive."""

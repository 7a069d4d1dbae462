"""The driver on kind: a node image, a cluster with simulated GPUs on its workers, the chart."""

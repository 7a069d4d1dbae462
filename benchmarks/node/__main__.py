"""`make bench`: the node's figures on the local cluster, which must be up (`make cluster-up`).

Anchors stand in the bars; a figure that can be had beside kube-scheduler alone is measured so,
in turn, in this run.
"""

import sys
from functools import partial
from pathlib import Path

from benchmarks import record
from benchmarks.node import crowded, pods, prepare, process, publish
from driver.kube import client
from hack.cluster import api, errors
from tests.e2e import playground

ROOT = Path(__file__).parents[2]
OURS, THEIRS = "bench-c", "bench-s"


def main() -> int:
    """Measure and record."""
    try:
        cluster = api.Cluster.load(ROOT)
    except errors.ClusterError as error:
        print(f"{error}\nbring it up first: make cluster-up")
        return 1
    start = record.Start()
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-bench")
    try:
        playground.add_node(cluster, OURS, "controller")
        playground.add_node(cluster, THEIRS, "scheduler")
        figures = record.parts(
            partial(process.measure, cluster, THEIRS),
            partial(prepare.measure, cluster, kube, THEIRS),
            crowded.measure,
            partial(pods.measure, cluster, kube, OURS, THEIRS),
            partial(publish.measure, cluster, kube),
        )
    finally:
        for name in (OURS, THEIRS):
            if name in cluster.nodes():
                cluster.remove_node(name)
    print(f"\nwritten to {record.write('node', figures, start).relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

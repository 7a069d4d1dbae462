"""500 plugins start at the same moment, on the cluster that is up: `python -m benchmarks.herd`.

First where nothing was published yet, then again where all is as it should be, then with all
slices deleted under them, as kubelets that restart together do. What is asked of the API server is
counted where it is sent. Plugins, API server and etcd share the machine, and all plugins one
Python process: how long it takes says how much work it is, not how long it would be elsewhere. So
the nodes are of L4s, with 24 devices each: elsewhere each node works out its own.

The first is three starts: in one of nine runs it took twice the CPU, and some requests timed out.
The others are two each.
"""

import argparse
import contextlib
import functools
from collections.abc import Sequence
from concurrent import futures
from pathlib import Path

from benchmarks import record
from benchmarks.allocator import fixtures
from benchmarks.control_plane import fixture
from benchmarks.herd import plugins
from driver import errors
from driver.kube import client, gvr
from driver.runtime import logs
from hack.cluster import api

ROOT = Path(__file__).parents[2]
COUNT = 500
PRODUCT = "l4"
ROUNDS, ROUNDS_AGAIN = 3, 2
"""Starts with nothing published, and with everything."""


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=COUNT, help="plugins, of one node each")
    parser.add_argument("--machine", default=PRODUCT, help="what each node is")
    options = parser.parse_args()
    logs.configure("warning")  # thousands of lines otherwise
    cluster = api.Cluster.load(ROOT)
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-bench")
    for name in cluster.controllers():
        cluster.stop(name)
    start = record.Start()
    try:
        fixture.nodes(kube, options.count)
        herd = plugins.Herd(cluster.kubeconfig, options.count, options.machine)
        first = herd.together()
        while len(first) < ROUNDS:
            _wipe(kube, options.count)
            first += herd.together()
        wipe = functools.partial(_wipe, kube, options.count)
        pairs = [herd.together(wipe) for _ in range(ROUNDS_AGAIN)]
        again, deleted = zip(*pairs, strict=True)
        figures = [
            *_figures("nothing published yet", options.count, first),
            *_figures("all published before", options.count, again),
            *_figures("all slices deleted under them", options.count, deleted),
        ]
        # Ahead of what follows: the calibrators are for a machine at rest.
        record.write("herd", figures, start)
    finally:
        fixture.empty(kube, options.count)
        for name in cluster.controllers():
            cluster.start(name)


def _figures(how: str, count: int, starts: Sequence[plugins.Start]) -> list[record.Figure]:
    name, books = f"{count} plugins at once, {how}", [start.book for start in starts]
    lists = [book.kinds["LIST"] / count for book in books]
    writes = [len(book.writes) / count for book in books]
    most = [float(book.most_writes_a_second()) for book in books]
    return [
        record.figure(f"{name}: until the last is done", "s", [start.took_s for start in starts]),
        record.figure(f"{name}: CPU of all plugins", "s", [start.cpu_s for start in starts]),
        record.figure(f"{name}: lists a plugin", "", lists),
        record.figure(f"{name}: unfiltered lists", "", [book.unfiltered for book in books]),
        record.figure(f"{name}: writes a plugin", "", writes),
        record.figure(f"{name}: most writes in a second", "", most),
    ]


def _wipe(kube: client.KubeClient, count: int) -> None:
    """Delete every slice of the nodes, node by node, several at a time."""

    def clear(number: int) -> None:
        mine = f"spec.nodeName={fixtures.node_name(number)}"
        for published in kube.list(gvr.RESOURCE_SLICES, field_selector=mine).items:
            with contextlib.suppress(errors.NotFound):
                kube.delete(gvr.RESOURCE_SLICES, published["metadata"]["name"])

    with futures.ThreadPoolExecutor(fixture.THREADS) as pool:
        list(pool.map(clear, range(count)))


if __name__ == "__main__":
    main()

"""The plugin as a process: start to first slice, and resident memory."""

import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import record
from driver.kube import client, gvr
from hack.cluster import api
from tests.e2e import playground

STARTS = 5
_CLOCK_BITS, _SCHEDULED = 3, 2
"""Of a process's clock, as clock_getcpuclockid(3) makes its number of the process's."""


def measure(cluster: api.Cluster, node: str) -> list[record.Figure]:
    """Start the plugin several times on a node whose slices were deleted.

    In each start the slices are wiped once: the pauses between a plugin's writes grow while they
    are wiped again and again. Such a pause is half a second and up to half as much by chance. The
    kubelet, which takes some fifteen seconds to start, wipes them in the first.
    """
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-bench")
    starts, sizes, wipes = [], [], []
    for number in range(STARTS):
        starts.append(_start_to_slice(cluster, kube, node))
        playground.until(functools.partial(_whole_pool, kube, node), 30, "the whole pool")
        sizes.append(rss(cluster.pid("plugin", node)))
        wipe = (
            functools.partial(_delete_slices, kube, node)
            if number
            else functools.partial(_restart_kubelet, cluster, node)
        )
        wipes.append(_wipe_to_slices(kube, node, wipe))
    return [
        record.figure("plugin start to first slice", "s", starts),
        record.figure("kubelet's wipe to slices again", "s", wipes),
        record.figure("plugin RSS, idle", "MiB", sizes),
    ]


def _start_to_slice(cluster: api.Cluster, kube: client.KubeClient, node: str) -> float:
    cluster.stop("plugin", node)
    _delete_slices(kube, node)
    started = time.monotonic()
    cluster.start("plugin", node)
    playground.until(lambda: _published(kube, node), 30, "a slice")
    return time.monotonic() - started


def _wipe_to_slices(kube: client.KubeClient, node: str, wipe: Callable[[], object]) -> float:
    earlier = playground.until(lambda: _whole_pool(kube, node), 30, "the whole pool")
    wipe()
    playground.until(lambda: earlier - _slices(kube, node), 40, "the slices are wiped")
    wiped = time.monotonic()
    playground.until(lambda: _whole_pool(kube, node) - earlier, 30, "the slices are back")
    return time.monotonic() - wiped


def _restart_kubelet(cluster: api.Cluster, node: str) -> None:
    cluster.stop("kubelet", node)
    cluster.start("kubelet", node)


def _delete_slices(kube: client.KubeClient, node: str) -> None:
    for published in _published(kube, node):
        kube.delete(gvr.RESOURCE_SLICES, published["metadata"]["name"])


def _published(kube: client.KubeClient, node: str) -> Sequence[gvr.Object]:
    chosen = f"spec.nodeName={node},spec.driver=gpu.ration.dev"
    return kube.list(gvr.RESOURCE_SLICES, field_selector=chosen).items


def _slices(kube: client.KubeClient, node: str) -> set[str]:
    return {published["metadata"]["uid"] for published in _published(kube, node)}


def _whole_pool(kube: client.KubeClient, node: str) -> set[str]:
    """The slices, once they are as many as they say."""
    slices = _published(kube, node)
    counts = {published["spec"]["pool"]["resourceSliceCount"] for published in slices}
    return (
        {published["metadata"]["uid"] for published in slices} if counts == {len(slices)} else set()
    )


def cpu_ms(pid: int) -> float:
    """Return the milliseconds of processor time of a process, of threads that ended too."""
    return time.clock_gettime_ns((~pid << _CLOCK_BITS) | _SCHEDULED) / 1e6


def rss(pid: int | None) -> float:
    """Resident memory of a process, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(row for row in status.splitlines() if row.startswith("VmRSS"))
    return int(line.split()[1]) / 1024

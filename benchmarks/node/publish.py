"""Publishing: our own time for a machine's slices, and how soon a fault is on the API."""

import contextlib
import itertools
import queue
import statistics
import threading
import time

from benchmarks import record
from driver import errors, ids, names
from driver.devices import faces
from driver.kube import client, gvr
from driver.kubeletplugin.nvml import library as nvml
from driver.kubeletplugin.publish import slice_plan
from driver.resources.publish import slice_builder
from hack.cluster import api
from simulator import control
from simulator import machine as machines
from tests.e2e import playground

MACHINES = ("hgx-b200", "hgx-a100-16")
ROUNDS = 15
FAULT_ROUNDS, FAULTS = 3, 30
NODE = "bench-b"
WHOLE = str(0xFFFFFFFF)


def measure(cluster: api.Cluster, kube: client.KubeClient) -> list[record.Figure]:
    """On nodes of their own."""
    figures = [_our_time(cluster, machine) for machine in MACHINES]
    playground.add_node(cluster, NODE, "controller", machine="hgx-b200")
    try:
        figures += _fault_to_slice(cluster, kube)
    finally:
        cluster.remove_node(NODE)
    return figures


def _our_time(cluster: api.Cluster, machine: str) -> record.Figure:
    """Reading the machine by NVML, its faces, the slices and the plan of writes."""
    playground.add_node(cluster, NODE, "controller", machine=machine)
    try:
        base = cluster.node_dir(NODE) / "gpu"
        library = nvml.NvmlLibrary(base / "driver-root", base / "host-root")
        seconds = [_once(library) for _ in range(ROUNDS)]
        library.close()
    finally:
        cluster.remove_node(NODE)
    return record.figure(
        f"{machine}: GPUs read to slices planned",
        "ms",
        [1000 * taken for taken in seconds],
    )


def _once(library: nvml.NvmlLibrary) -> float:
    started = time.perf_counter()
    inventory = library.inventory()
    every = {gpu.uuid: faces.Offering(kinds=frozenset(faces.Kind)) for gpu in inventory.gpus}
    terms = slice_builder.PublishTerms(names.DRIVER, ids.NodeName(NODE), "controller", every)
    pool, refused = slice_builder.build_pool(inventory, terms, {})
    writes = slice_plan.plan_writes(pool, slice_builder.Owner(ids.NodeName(NODE), "uid"), [])
    seconds = time.perf_counter() - started
    if refused or not writes:
        raise ValueError(f"{refused or 'nothing'} of {len(inventory.gpus)} GPUs")
    return seconds


def _fault_to_slice(cluster: api.Cluster, kube: client.KubeClient) -> list[record.Figure]:
    """Xid 48 of one GPU, until a watcher of the API sees the taint; then the GPU recovers."""
    base = cluster.node_dir(NODE) / "gpu"
    gpu = machines.build("hgx-b200", seed=NODE).gpus[0].slot.pci
    seen = Watcher(kube)
    seen.start()
    waited: list[list[float]] = [[] for _ in range(FAULT_ROUNDS)]
    for number in range(FAULT_ROUNDS * FAULTS):
        started = time.monotonic()
        control.send(base, "xid", gpu, "48", WHOLE, WHOLE)
        waited[number // FAULTS].append(1000 * (seen.until({names.TAINT_XID}) - started))
        control.send(base, "recovery", gpu, "GPU_RESET")
        seen.until({names.TAINT_XID, names.TAINT_RECOVERY})
        control.send(base, "recovery", gpu, "NONE")
        seen.until(set())
    seen.end()
    return [
        record.figure("Xid to its taint on the API, p50", "ms", [*itertools.chain(*waited)]),
        record.figure(
            "Xid to its taint on the API, p99",
            "ms",
            record.tails(waited, stretch=1),
            center=statistics.geometric_mean,
        ),
    ]


class Watcher:
    """Who watches the node's slices, and which taints of ill health they show, when."""

    def __init__(self, kube: client.KubeClient) -> None:
        chosen = f"spec.nodeName={NODE}"
        version = kube.list(gvr.RESOURCE_SLICES, field_selector=chosen).version
        self._stream = kube.watch(
            gvr.RESOURCE_SLICES,
            version=version,
            timeout_s=600,
            read_timeout_s=300,
            field_selector=chosen,
        )
        self._seen: queue.SimpleQueue[tuple[float, set[str]]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._watch)

    def start(self) -> None:
        """Watch from now on."""
        self._thread.start()

    def end(self) -> None:
        """Break the watch off."""
        self._stream.interrupt()
        self._thread.join(10)

    def until(self, keys: set[str]) -> float:
        """The moment at which exactly these were seen."""
        while True:
            at, found = self._seen.get(timeout=30)
            if found == keys:
                return at

    def _watch(self) -> None:
        with contextlib.suppress(errors.ApiError):  # broken off at the end
            for event in self._stream:
                at = time.monotonic()
                keys = {
                    taint["key"]
                    for device in event.object["spec"].get("devices", ())
                    for taint in device.get("taints", ())
                }
                # One GPU fails over and over here: that it is kept out then is not what is timed.
                self._seen.put((at, keys - names.OWN_TAINTS - {names.TAINT_QUARANTINE}))

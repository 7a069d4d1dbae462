"""NodePrepareResources over the plugin's real socket, as the kubelet calls it."""

import functools
import itertools
import statistics
import uuid
from concurrent import futures

import grpc

from benchmarks import record, timing
from benchmarks.node import process
from driver.kube import client, gvr
from driver.pb import dra_v1_pb2, dra_v1_pb2_grpc
from hack.cluster import api
from tests.e2e import playground

CALLS, REPEATS = 32, 8
"""Calls of a round, and rounds, of what is prepared already."""
BATCHES = 20
DAEMONS = 10
WARM_UP = 1_000
CYCLES = 10_000
LOOKS = 20
"""How often in these cycles the memory is looked at; single calls are of that many rounds."""
GPUS = 8


def measure(cluster: api.Cluster, kube: client.KubeClient, node: str) -> list[record.Figure]:
    """Eight at once, over again, with a daemon; then one at a time, until a leak would show."""
    ground = playground.Playground.open(cluster, kube)
    socket = cluster.node_dir(node) / "kubelet" / "plugins" / "gpu.ration.dev" / "dra.sock"
    try:
        devices = _devices(ground, node)
        claims = [_claim(ground, node, device) for device in devices]
        share = _claim(ground, node, f"{devices[0]}-mps")
        with grpc.insecure_channel(f"unix://{socket}") as channel:
            stub = dra_v1_pb2_grpc.DRAPluginStub(channel)  # type: ignore[no-untyped-call]
            return [
                _at_once(stub, claims),
                _repeats(stub, claims[0]),
                _daemons(stub, share),
                *_cycles(stub, claims, cluster.pid("plugin", node)),
            ]
    finally:
        _free(ground)
        ground.close()


def _devices(ground: playground.Playground, node: str) -> list[str]:
    """The node's whole GPUs."""
    chosen = f"spec.nodeName={node},spec.driver=gpu.ration.dev"
    slices = ground.kube.list(gvr.RESOURCE_SLICES, field_selector=chosen).items
    whole = [
        device["name"]
        for published in slices
        for device in published["spec"].get("devices", ())
        if device["attributes"]["type"]["string"] == "gpu"
    ]
    return whole[:GPUS]


def _claim(ground: playground.Playground, node: str, device: str) -> dra_v1_pb2.Claim:
    """A claim that was given a device; an MPS face is a share of 10 GiB and 10 %."""
    name = f"claim-{device}"
    ground.create(playground.a_claim(name))
    result: dict[str, object] = {
        "request": "gpu",
        "driver": "gpu.ration.dev",
        "pool": node,
        "device": device,
    }
    if device.endswith("-mps"):
        amounts = {"memory": "10Gi", "compute": "10", "shares": "1"}
        result |= {"shareID": str(uuid.uuid4()), "consumedCapacity": amounts}
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }
    body = {"status": {"allocation": allocation}}
    created = ground.kube.patch(
        gvr.RESOURCE_CLAIMS, name, body, namespace=ground.namespace, subresource="status"
    )
    uid = created["metadata"]["uid"]
    return dra_v1_pb2.Claim(namespace=ground.namespace, name=name, uid=uid)


def _free(ground: playground.Playground) -> None:
    """Nobody uses these claims, so nobody else frees them."""
    for claim in ground.claims():
        ground.kube.patch(
            gvr.RESOURCE_CLAIMS,
            claim["metadata"]["name"],
            {"status": {"allocation": None}},
            namespace=ground.namespace,
            subresource="status",
        )


def _at_once(stub: dra_v1_pb2_grpc.DRAPluginStub, claims: list[dra_v1_pb2.Claim]) -> record.Figure:
    walls = [_batch(stub, claims) for _ in range(BATCHES)]
    return record.figure("8 Prepares at once, wall for all", "ms", walls)


def _repeats(stub: dra_v1_pb2_grpc.DRAPluginStub, claim: dra_v1_pb2.Claim) -> record.Figure:
    """As after a restart of the kubelet: the claim is prepared already.

    All calls take a quarter of a second, which is one pace of the machine; so the mean of rounds'
    medians, with calibrators between.
    """
    _prepare(stub, claim)
    calibrations = record.Calibrations()
    medians = [
        statistics.median(timing.wall_ms(lambda: _prepare(stub, claim)) for _ in range(CALLS))
        for _ in calibrations.between(range(REPEATS))
    ]
    _unprepare(stub, claim)
    return calibrations.figure("Prepare again, p50", "ms", medians)


def _daemons(stub: dra_v1_pb2_grpc.DRAPluginStub, share: dra_v1_pb2.Claim) -> record.Figure:
    """The first share of a GPU: its daemon is started and answers.

    The mean: a start takes some 53 or some 73 ms, and either may be the median.
    """
    walls = []
    for _ in range(DAEMONS):
        walls.append(timing.wall_ms(lambda: _prepare(stub, share)))
        _unprepare(stub, share)
    return record.figure("Prepare with an MPS daemon's start", "ms", walls, center=statistics.fmean)


def _cycles(
    stub: dra_v1_pb2_grpc.DRAPluginStub, claims: list[dra_v1_pb2.Claim], pid: int | None
) -> list[record.Figure]:
    """Figures of single calls for minutes, and by how much the memory grew meanwhile.

    The growth is that of the line through all looks, which no single page sways.
    """
    for number in range(WARM_UP):
        _prepare(stub, claims[number % len(claims)])
        _unprepare(stub, claims[number % len(claims)])
    sizes = [process.rss(pid)]
    prepares: list[list[float]] = []
    unprepares: list[list[float]] = []
    calibrations = record.Calibrations()
    for _ in calibrations.between(range(LOOKS)):
        prepares.append([])
        unprepares.append([])
        for number in range(CYCLES // LOOKS):
            claim = claims[number % len(claims)]
            prepares[-1].append(timing.wall_ms(functools.partial(_prepare, stub, claim)))
            unprepares[-1].append(timing.wall_ms(functools.partial(_unprepare, stub, claim)))
        sizes.append(process.rss(pid))
    grown = statistics.linear_regression(range(len(sizes)), sizes).slope * LOOKS
    growth = record.figure(f"RSS growth over {CYCLES} cycles", "MiB", [grown])
    times = (
        record.figure("Prepare, one at a time, p50", "ms", [*itertools.chain(*prepares)]),
        record.p99("Prepare, one at a time, p99", "ms", prepares),
        record.figure("Unprepare, one at a time, p50", "ms", [*itertools.chain(*unprepares)]),
        record.p99("Unprepare, one at a time, p99", "ms", unprepares),
    )
    return [
        *(calibrations.add_to(measured) for measured in times),
        record.replaced(growth, grown, f"{sizes[0]:.1f} to {sizes[-1]:.1f} MiB"),
    ]


def _batch(stub: dra_v1_pb2_grpc.DRAPluginStub, claims: list[dra_v1_pb2.Claim]) -> float:
    with futures.ThreadPoolExecutor(len(claims)) as pool:
        wall = timing.wall_ms(lambda: list(pool.map(lambda claim: _prepare(stub, claim), claims)))
        list(pool.map(lambda claim: _unprepare(stub, claim), claims))
    return wall


def _prepare(stub: dra_v1_pb2_grpc.DRAPluginStub, claim: dra_v1_pb2.Claim) -> None:
    request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[claim])
    answer = stub.NodePrepareResources(request, timeout=45).claims[claim.uid]
    if answer.error:
        raise RuntimeError(answer.error)


def _unprepare(stub: dra_v1_pb2_grpc.DRAPluginStub, claim: dra_v1_pb2.Claim) -> None:
    request = dra_v1_pb2.NodeUnprepareResourcesRequest(claims=[claim])
    answer = stub.NodeUnprepareResources(request, timeout=45).claims[claim.uid]
    if answer.error:
        raise RuntimeError(answer.error)

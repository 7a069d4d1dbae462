"""NodePrepareResources over the plugin's real socket, as the kubelet calls it."""

import time
from collections.abc import Callable
from concurrent import futures

import grpc

from benchmarks import record
from driver.kube import client, resource
from driver.pb import dra_v1_pb2, dra_v1_pb2_grpc
from hack.cluster import api
from tests.e2e import playground

ROUNDS = 100
BATCHES = 20
GPUS = 8


def measure(cluster: api.Cluster, kube: client.KubeClient, node: str) -> list[record.Figure]:
    """One at a time, then eight at once; each followed by its Unprepare."""
    ground = playground.Playground.open(cluster, kube)
    socket = cluster.node_dir(node) / "kubelet" / "plugins" / "gpu.ration.dev" / "dra.sock"
    try:
        claims = _claims(ground, node)
        with grpc.insecure_channel(f"unix://{socket}") as channel:
            stub = dra_v1_pb2_grpc.DRAPluginStub(channel)  # type: ignore[no-untyped-call]
            return _figures(stub, claims)
    finally:
        _free(ground)
        ground.close()


def _claims(ground: playground.Playground, node: str) -> list[dra_v1_pb2.Claim]:
    chosen = f"spec.nodeName={node},spec.driver=gpu.ration.dev"
    slices = ground.kube.list(resource.RESOURCE_SLICES, field_selector=chosen).items
    devices = [
        device["name"]
        for one in slices
        for device in one["spec"].get("devices", ())
        if device["attributes"]["type"]["string"] == "gpu"
    ]
    found = []
    for number, device in enumerate(devices[:GPUS]):
        name = f"claim-{number}"
        ground.create(playground.a_claim(name))
        result = {"request": "gpu", "driver": "gpu.ration.dev", "pool": node, "device": device}
        body = {"status": {"allocation": {"devices": {"results": [result]}}}}
        made = ground.kube.patch(
            resource.RESOURCE_CLAIMS, name, body, namespace=ground.namespace, subresource="status"
        )
        uid = made["metadata"]["uid"]
        found.append(dra_v1_pb2.Claim(namespace=ground.namespace, name=name, uid=uid))
    return found


def _free(ground: playground.Playground) -> None:
    """Nobody uses these claims, so nobody else frees them."""
    for one in ground.claims():
        ground.kube.patch(
            resource.RESOURCE_CLAIMS,
            one["metadata"]["name"],
            {"status": {"allocation": None}},
            namespace=ground.namespace,
            subresource="status",
        )


def _figures(
    stub: dra_v1_pb2_grpc.DRAPluginStub, claims: list[dra_v1_pb2.Claim]
) -> list[record.Figure]:
    prepares, unprepares = [], []
    for number in range(ROUNDS):
        claim = claims[number % len(claims)]
        prepares.append(_timed(lambda one=claim: _prepare(stub, one)))  # type: ignore[misc]
        unprepares.append(_timed(lambda one=claim: _unprepare(stub, one)))  # type: ignore[misc]
    walls = [_batch(stub, claims) for _ in range(BATCHES)]
    return [
        record.figure("Prepare, one at a time, p50", "ms", prepares, bar="<= 3.5 ms (2.2 ms, Go)"),
        record.figure("Prepare, one at a time, p99", "ms", [record.percentile(prepares, 0.99)]),
        record.figure("Unprepare, one at a time, p50", "ms", unprepares),
        record.figure("8 Prepares at once, wall for all", "ms", walls, bar="<= 30 ms (620 ms, Go)"),
        record.figure("8 Prepares at once, p99 wall", "ms", [record.percentile(walls, 0.99)]),
    ]


def _batch(stub: dra_v1_pb2_grpc.DRAPluginStub, claims: list[dra_v1_pb2.Claim]) -> float:
    with futures.ThreadPoolExecutor(len(claims)) as pool:
        wall = _timed(lambda: list(pool.map(lambda claim: _prepare(stub, claim), claims)))
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


def _timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return (time.perf_counter() - started) * 1000

"""A pod's way: created -> bound -> Running, by our controller and by kube-scheduler alone."""

import time

from benchmarks import record
from driver.kube import client
from hack.cluster import api
from tests.e2e import playground

ROUNDS = 6


def measure(
    cluster: api.Cluster, kube: client.KubeClient, ours: str, theirs: str
) -> list[record.Figure]:
    """Pods on the two nodes in turn, one at a time."""
    ground = playground.Playground.open(cluster, kube)
    ground.create(playground.a_template("gpu"))
    taken: dict[str, tuple[list[float], list[float]]] = {ours: ([], []), theirs: ([], [])}
    try:
        for number in range(ROUNDS):
            for node in (ours, theirs):
                bound, running = _one(ground, f"pod-{number}-{node}", node)
                taken[node][0].append(bound)
                taken[node][1].append(running)
    finally:
        ground.close()
    return [
        record.figure(f"pod created to {what}", "s", taken[ours][index], taken[theirs][index])
        for index, what in enumerate(("bound", "Running"))
    ]


def _one(ground: playground.Playground, name: str, node: str) -> tuple[float, float]:
    started = time.monotonic()
    ground.create(playground.a_pod(name, template="gpu", nodeSelector=playground.on(node)))
    bound = running = 0.0
    while not running:
        pod = ground.pod(name)
        now = time.monotonic() - started
        if not bound and pod["spec"].get("nodeName"):
            bound = now
        if pod["status"].get("phase") == "Running":
            running = now
        if now > 60:  # noqa: PLR2004 - a bound on one round, in seconds
            raise TimeoutError(f"{name} does not run")
    ground.delete_pod(name)
    return bound, running

"""After our write kube-scheduler may still refuse, and that is acted on at once (ADR 18).

kube-scheduler is stopped while the controller writes, so that the node can change in between;
started again, it sees everything at once.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from driver import errors
from driver.kube import client, gvr
from driver.names import GATE_LABEL
from driver.resources.dra import claims
from hack.cluster import api
from tests.e2e import playground

A, B = "e2e-a", "e2e-b"
SCHEDULER = "kube-scheduler"
HOG_CPU = "1700m"
POD_CPU = "500m"
SOONER_S = 25
"""Less than a refusal is left alone that may pass, or that leaves open which node is meant."""


@pytest.fixture(params=["false", "true"], ids=["ungated", "gated"])
def field(
    request: pytest.FixtureRequest,
    cluster: api.Cluster,
    nodes: tuple[str, ...],
    kube: client.KubeClient,
) -> Iterator[playground.Playground]:
    """A namespace of the test's own: behind the gate pods come with a nominated node."""
    assert nodes
    ground = playground.Playground.open(cluster, kube, **{GATE_LABEL: request.param})
    try:
        yield ground
    finally:
        ground.close()


@pytest.fixture(autouse=True)
def restored(field: playground.Playground) -> Iterator[None]:
    """Whatever a test did to the nodes and the scheduler is undone."""
    yield
    if field.cluster.pid(SCHEDULER) is None:
        field.cluster.start(SCHEDULER)
    for node in (A, B):
        field.cluster.kubectl("uncordon", node)


@contextlib.contextmanager
def scheduler_stopped(field: playground.Playground) -> Iterator[None]:
    field.cluster.stop(SCHEDULER)
    try:
        yield
    finally:
        field.cluster.start(SCHEDULER)


def claim(field: playground.Playground, name: str) -> claims.Claim:
    return claims.parse(field.claim(name))


def allocated(field: playground.Playground, *names: str) -> None:
    """Wait until the controller wrote the claims, each with the hold."""

    def written() -> bool:
        results = [claim(field, name) for name in names]
        return all(any(consumer.is_hold for consumer in c.consumers) for c in results)

    playground.until(written, 20, "the controller writes the claims")


def place(field: playground.Playground, count: int = 1, **spec: Any) -> tuple[str, ...]:
    """A pod with claims that the controller allocates on node A."""
    names = tuple(f"claim-{number}" for number in range(count))
    field.create(*(playground.a_claim(name) for name in names))
    field.create(playground.a_pod("pod", claims=names, **spec))
    allocated(field, *names)
    assert {field.device_of(name)[0] for name in names if field.device_of(name)} == {A}  # type: ignore[index]
    playground.until(lambda: not field.pod("pod")["spec"].get("schedulingGates"), 20, "no gate")
    return names


@pytest.mark.parametrize("count", [1, 2])
def test_with_the_node_cordoned_the_pod_runs_on_another(
    field: playground.Playground, count: int
) -> None:
    with scheduler_stopped(field):
        names = place(field, count)
        field.cluster.kubectl("cordon", A)
    field.running("pod", SOONER_S)
    assert field.pod("pod")["spec"]["nodeName"] == B
    (note,) = field.told("pod", "AllocationCleared")
    assert "unschedulable" in note
    assert field.told("claim-0", "AllocationCleared")

    def only_the_pod() -> bool:
        results = [claim(field, name) for name in names]
        return all([consumer.is_pod for consumer in c.consumers] == [True] for c in results)

    playground.until(only_the_pod, 20, "the holds are gone")


@pytest.mark.parametrize("count", [1, 2])
def test_with_no_other_node_the_gpus_are_free_again_at_once(
    field: playground.Playground, count: int
) -> None:
    on = playground.on(A)
    with scheduler_stopped(field):
        names = place(field, count, nodeSelector=on)
        field.cluster.kubectl("cordon", A)
    playground.until(
        lambda: not any(field.device_of(name) for name in names), SOONER_S, "the GPUs are free"
    )
    (note,) = field.told("pod", "AllocationCleared")
    assert "unschedulable" in note


def hog(field: playground.Playground, **spec: Any) -> None:
    """A pod that takes nearly all CPU of node A."""
    body = playground.a_pod("hog", cpu=HOG_CPU, command="sleep 3600", nodeName=A, **spec)
    field.create(body)
    field.running("hog")


def test_without_cpu_the_gpu_is_freed_and_no_pod_is_preempted(
    field: playground.Playground,
) -> None:
    with scheduler_stopped(field):
        (name,) = place(field, nodeSelector=playground.on(A), cpu=POD_CPU)
        hog(field)
    playground.until(lambda: field.device_of(name) is None, SOONER_S, "the GPU is free")
    assert field.pod("hog")["status"]["phase"] == "Running"
    (note,) = field.told("pod", "AllocationCleared")
    assert "Insufficient cpu" in note


@pytest.fixture
def urgent(field: playground.Playground) -> Iterator[str]:
    name = f"urgent-{field.namespace}"
    body = {"metadata": {"name": name}, "value": 1000}
    field.kube.create(gvr.PRIORITY_CLASSES, body)
    yield name
    with contextlib.suppress(errors.NotFound):
        field.kube.delete(gvr.PRIORITY_CLASSES, name)


def test_a_preemptible_pod_makes_room_and_ours_runs_there(
    field: playground.Playground, urgent: str
) -> None:
    on = playground.on(A)
    with scheduler_stopped(field):
        (name,) = place(field, nodeSelector=on, cpu=POD_CPU, priorityClassName=urgent)
        device = field.device_of(name)
        hog(field)
    field.running("pod", 45)
    playground.until(lambda: field.find("hog") is None, 20, "the other pod is preempted")
    assert field.device_of(name) == device
    assert field.events("pod", "AllocationCleared") == []


def leader(field: playground.Playground) -> str:
    lease = field.kube.get(gvr.LEASES, "ration-controller", "ration-system")
    return "-".join(str(lease["spec"]["holderIdentity"]).split("-")[:2])


def test_holds_of_a_killed_leader_are_not_forgotten(field: playground.Playground) -> None:
    with scheduler_stopped(field):
        (bound,) = place(field)
        field.create(playground.a_claim("gone"), playground.a_pod("leaves", claims=("gone",)))
        allocated(field, "gone")
        killed = leader(field)
        field.cluster.kill(killed)
        field.kube.delete(gvr.PODS, "leaves", field.namespace)
    field.running("pod")
    assert any(consumer.is_hold for consumer in claim(field, bound).consumers)
    field.cluster.start(killed)

    def swept() -> bool:
        retained = [consumer.is_pod for consumer in claim(field, bound).consumers] == [True]
        return retained and claim(field, "gone").consumers == ()

    playground.until(swept, 45, "the next leader sweeps the holds")
    playground.until(lambda: field.device_of("gone") is None, 20, "the other GPU is free")

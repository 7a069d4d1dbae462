"""A node's label is flipped both ways while a claim is held and pods come: nothing is given twice.

It has a node of its own, for whoever allocates there is nobody else's matter.
"""

import threading
import time
from collections.abc import Iterator

import pytest

from driver.kube import client, gvr
from hack.cluster import api
from tests.e2e import playground
from tests.fakes import handing

NODE = "e2e-f"
LABEL = "ration.dev/allocator"
ENDS = {"AllocatorChanging", "AllocatorChanged"}
WITHIN_S = 60.0


class Observer:
    """Shows every change of the node's slices to a judge, as a reader that polls sees them."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube
        self._stop = threading.Event()
        # A poll may see the end of the old state late, by a second at most, and the new one early.
        self._judge = handing.Judge(handing.APART_S - 1)
        self._shown: dict[str, playground.Raw] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def devices(self) -> dict[str, playground.Raw]:
        """All that the node publishes now, by name."""
        mine = f"spec.nodeName={NODE}"
        items = self._kube.list(gvr.RESOURCE_SLICES, field_selector=mine).items
        return {
            entry["name"]: entry for each in items for entry in each["spec"].get("devices") or ()
        }

    def givers(self) -> set[str | None]:
        """Return who gives the devices out; None: nobody does."""
        return {handing.giver(device) for device in self.devices().values()}

    def until_given_by(self, whom: str | None) -> None:
        playground.until(lambda: self.givers() == {whom}, WITHIN_S, f"{whom} gives out {NODE}")

    def generation(self) -> int:
        return max(int(entry["spec"]["pool"]["generation"]) for entry in self._shown.values())

    def end(self) -> list[str]:
        """Stop looking; what the judge says."""
        assert self._thread.is_alive()
        self._stop.set()
        self._thread.join(10)
        return self._judge.breaches

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            at_s = time.monotonic()
            mine = f"spec.nodeName={NODE}"
            result = {
                item["metadata"]["name"]: item
                for item in self._kube.list(gvr.RESOURCE_SLICES, field_selector=mine).items
            }
            for name in self._shown.keys() | result.keys():
                if result.get(name) != self._shown.get(name):
                    self._judge.see(name, result.get(name), at_s)
            self._shown = result


@pytest.fixture(scope="module")
def flipping(cluster: api.Cluster) -> Iterator[str]:
    try:
        playground.add_node(cluster, NODE)
        yield NODE
    finally:
        if NODE in cluster.nodes():
            cluster.remove_node(NODE)


@pytest.fixture
def slices(
    field: playground.Playground, kube: client.KubeClient, flipping: str
) -> Iterator[Observer]:
    """The node is the controller's at the begin and again at the end."""
    assert flipping
    observer = Observer(kube)
    observer.until_given_by("controller")
    yield observer
    label(field, None)
    playground.until(
        lambda: observer.givers() == {"controller"}, WITHIN_S, "the controller's again"
    )
    assert observer.end() == []


def label(field: playground.Playground, allocator: str | None) -> None:
    body = {"metadata": {"labels": {LABEL: allocator}}}
    field.kube.patch(gvr.NODES, NODE, body)


def a_pod_comes(field: playground.Playground, name: str) -> None:
    on = playground.on(NODE)
    field.create(playground.a_claim(name), playground.a_pod(name, claims=(name,), nodeSelector=on))


def ours(field: playground.Playground, claim: str) -> bool:
    """Return whether our controller allocated it."""
    managers = {
        managed_field["manager"]
        for managed_field in field.claim(claim)["metadata"]["managedFields"]
    }
    return any(manager.startswith("ration-controller") for manager in managers)


def told(field: playground.Playground) -> set[str]:
    """The reasons of the events on the node."""
    items = field.kube.list(gvr.EVENTS).items
    return {item["reason"] for item in items if item["regarding"]["name"] == NODE}


def unlike(entry: playground.Raw) -> playground.Raw:
    """A device without what a handover may change."""
    attributes = {key: value for key, value in entry["attributes"].items() if key != "allocator"}
    return {**entry, "taints": None, "attributes": attributes}


def flip(field: playground.Playground, slices: Observer, to: str | None, pod: str) -> None:
    """Label the node; a pod that comes in the middle waits for whom the label names."""
    label(field, to)
    slices.until_given_by(None)
    # Whoever saw the old state last has seen the taint by now.
    time.sleep(3)
    a_pod_comes(field, pod)
    while slices.givers() == {None}:
        allocated = field.device_of(pod) is not None
        assert not allocated or slices.givers() != {None}, "given out under a handover"
        time.sleep(0.2)
    slices.until_given_by(to or "controller")
    field.running(pod)


def test_a_node_changes_allocator_twice_while_a_claim_is_allocated_and_pods_arrive(
    field: playground.Playground, slices: Observer
) -> None:
    a_pod_comes(field, "holder")
    field.running("holder")
    pool, held = field.device_of("holder") or ("", "")
    previous, generation = slices.devices()[held], slices.generation()
    flip(field, slices, "scheduler", "second")
    assert not ours(field, "second")
    flip(field, slices, None, "third")
    assert ours(field, "third")
    assert field.device_of("holder") == (pool, held)
    assert unlike(slices.devices()[held]) == unlike(previous)
    assert slices.generation() >= generation + 2
    for name in ("holder", "second", "third"):
        assert field.pod(name)["status"]["phase"] == "Running"
    listed = [uuid for name in ("holder", "second", "third") for uuid in field.uuids(name)]
    assert len(set(listed)) == len(listed) == 3
    playground.until(lambda: told(field) >= ENDS, 20, "both ends of a handover are told")


def test_a_handover_completes_although_the_plugin_is_killed_during_it(
    field: playground.Playground, slices: Observer
) -> None:
    label(field, "scheduler")
    slices.until_given_by(None)
    time.sleep(10)
    field.cluster.kill("plugin", NODE)
    field.cluster.start("plugin", NODE)
    slices.until_given_by("scheduler")
    a_pod_comes(field, "after")
    field.running("after")
    assert not ours(field, "after")

"""Answers to readers about pods that are bound where their claims are not allocated."""

import dataclasses

import pytest

from driver import ids, names
from driver.cli.explain import text as explain_text
from driver.controller.web import source as web_source
from driver.resources.dra import claims
from driver.scheduling.explain import explainer
from driver.scheduling.lifecycle import bound_pods
from driver.scheduling.reports import catalog, model
from driver.scheduling.reports.documents import explanation as document_explanation
from driver.scheduling.reports.documents import local_explanation
from driver.scheduling.snapshot import allocation_hold, cluster_state
from tests.fakes.deciding import World
from tests.support.builders import objects, scheduler_objects

KEY = ids.Key("default/pod")


def a_full_node() -> World:
    """Node node-1 is taken by pod `first`; a pod that asks for a GPU names it itself."""
    world = World(2, 1)
    world.add(objects.a_claim("first"), objects.a_pod("first", "first", nodeName="node-1"))
    world.settle()
    world.settle(bound_pods.GRACE_S)
    world.add(objects.a_claim(), objects.a_pod(nodeName="node-1"))
    world.settle()
    world.settle(2.0)
    return world


def too_large() -> World:
    world = World(4, 1)
    world.add(
        objects.a_claim("claim", objects.a_request("gpu", 3)), objects.a_pod(nodeName="node-1")
    )
    world.settle()
    world.settle(2.0)
    return world


def used_elsewhere() -> World:
    world = World(1, 1)
    user = claims.render_consumer(allocation_hold.pod_entry(objects.pod("user")))
    status = objects.allocated("node-0", "gpu-0", reserved=[user])
    world.add(objects.a_pod("user", "claim", nodeName="node-0", status={"phase": "Running"}))
    world.add(objects.a_claim(status=status), objects.a_pod(nodeName="node-1"))
    world.settle()
    world.settle(2.0)
    return world


def of_no_node() -> World:
    world = World(2)
    world.add(objects.a_claim(), objects.a_pod(nodeName="nowhere"))
    world.settle()
    world.settle(2.0)
    return world


def answer(world: World) -> explainer.Explanation | None:
    asked = world.decider.explain_queries.request(KEY)
    world.settle(0.0)
    return asked.result(0)


def by_the_controller(world: World) -> catalog.Reports:
    answer(world)
    explain = document_explanation.explain_by(world.decider.explain_queries.last_explanation)
    minded = web_source.SourceInputs(lambda: None, tuple, explain, tuple)
    return web_source.ReportSource(world.stores, names.DRIVER, minded, world.clock).read()


def by_a_kubeconfig_alone(world: World) -> catalog.Reports:
    stores = world.stores
    fields = {one.name for one in dataclasses.fields(cluster_state.CachedObjects)}
    known = {name: getattr(stores, name).snapshot() for name in fields if hasattr(stores, name)}
    work = local_explanation.LocalExplainer(
        names.DRIVER, cluster_state.CachedObjects(**known), "2026-11-24T00:00:00Z"
    )
    return dataclasses.replace(by_the_controller(world), explain=work)


READERS = [by_the_controller, by_a_kubeconfig_alone]


def report(found: catalog.Reports) -> tuple[model.Pod, str]:
    """The pod of the JSON API, and as `ration explain pod` prints it."""
    pod = found.pod(KEY)
    assert pod is not None
    (text,) = explain_text.explain_pod(found, KEY).text.parts
    assert isinstance(text, str)
    return pod, " ".join(text.split())


@pytest.mark.parametrize("read", READERS)
def test_a_bound_pod_reports_only_its_own_node(read: object) -> None:
    assert callable(read)
    pod, text = report(read(a_full_node()))
    assert (pod.state, pod.reason) == ("waiting", "PodBoundToOtherNode")
    assert pod.explanation is not None
    assert [one.nodes for one in pod.explanation.refusals] == [("node-1",)]
    assert "The pod is bound to node-1, and its claims can only be allocated there: 0 of 1" in text
    assert "Nearest fit: Needs 1 GPU: 0 free; freeing pod default/first would suffice" in text
    assert "What the node lacks: node-1: 0 of 1 devices fit (1 DeviceInUse)" in text
    assert "node-0" not in text
    assert "What to do: " in text


def test_a_bound_pod_reports_the_holders_of_its_nodes_devices() -> None:
    full = answer(a_full_node())
    assert full is not None
    assert "1 GPU of node-1 is taken by pod default/first (claim first)" in full.text


@pytest.mark.parametrize("read", READERS)
def test_a_node_that_would_never_do_is_not_compared_with_others(read: object) -> None:
    assert callable(read)
    _, text = report(read(too_large()))
    assert "Needs 3 GPUs: node-1 has 1, used or not" in text
    assert "node-0" not in text


@pytest.mark.parametrize("read", READERS)
def test_a_claim_that_another_pod_uses_elsewhere_is_named_with_it(read: object) -> None:
    assert callable(read)
    pod, text = report(read(used_elsewhere()))
    assert pod.reason == "PodBoundToOtherNode"
    assert "claim claim is allocated on node-0: pod user has it" in text


@pytest.mark.parametrize("read", READERS)
def test_a_node_that_does_not_exist_is_named(read: object) -> None:
    assert callable(read)
    pod, text = report(read(of_no_node()))
    assert (pod.state, pod.reason) == ("waiting", "NodeNotFound")
    assert "node nowhere does not exist" in text


def test_a_bound_pod_that_its_queue_keeps_waiting_is_told_of_the_limit() -> None:
    world = World(2)
    world.add(
        scheduler_objects.a_queue("team", members=[{"namespace": "default"}], limit={"gpus": "1"})
    )
    request = objects.a_request("gpu", 2)
    world.add(objects.a_claim("claim", request), objects.a_pod(nodeName="node-0"))
    world.settle()
    world.settle(2.0)
    pod, text = report(by_the_controller(world))
    assert pod.reason == "QueueLimitExceeded"
    assert "queue team" in text


def test_a_pod_bound_elsewhere_does_not_report_its_previous_placement() -> None:
    world = World(1, 1)
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    world.change_pod("pod", node="node-1")
    pod, text = report(by_the_controller(world))
    assert pod.reason == "PodBoundToOtherNode"
    assert "the devices of claim claim on node-0 are freed first" in text
    assert "On node-0: " not in text


def test_a_bound_pod_with_its_devices_waits_for_nothing() -> None:
    world = World(1)
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    world.scheduled()
    world.settle(2.0)
    pod, text = report(by_the_controller(world))
    assert (pod.state, pod.reason) == ("placed", "")
    assert "On node-0: " in text

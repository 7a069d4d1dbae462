from typing import Any

import pytest

from driver import ids
from driver.controller.commit import reporter
from driver.controller.nodes import extended_resource_pods
from driver.resources.core import nodes, pods
from driver.resources.dra import device_classes, slices, taint_rules
from tests.fakes import clock
from tests.support.builders import objects

DRIVER = "gpu.example.com"
IMPLICIT = "deviceclass.resource.kubernetes.io/"
SELECTOR = f'device.driver == "{DRIVER}"'
WORDS = "0/1 nodes are available: 1 cannot allocate all claims."
RULE = {
    "metadata": {"name": "rule"},
    "spec": {"deviceSelector": {"driver": DRIVER}, "taint": objects.ALLOCATOR_TAINT},
}


def a_class(name: str, resource: str, *, converted: bool = False) -> device_classes.DeviceClass:
    raw = objects.a_class(name, SELECTOR, extendedResourceName=resource)
    raw["metadata"]["labels"] = {"ration.dev/convert": str(converted).lower()}
    return device_classes.parse(raw)


def a_pod(resource: str, message: str = WORDS, **spec: Any) -> pods.Pod:
    container = {"name": "main", "resources": {"requests": {resource: "2", "cpu": "1"}}}
    body = {"containers": [container], "resourceClaims": [], **spec}
    return objects.pod("web", status=objects.refused(message), **body)


def a_node(allocatable: str) -> nodes.Node:
    raw = objects.a_node("node-a")
    raw["status"]["allocatable"]["example.com/gpu"] = allocatable
    return nodes.parse(raw)


def a_slice(*, managed: bool) -> slices.Slice:
    device = objects.a_device("gpu-0", taints=[objects.ALLOCATOR_TAINT] if managed else [])
    return slices.parse(objects.a_slice("node-a", [device], DRIVER))


class World:
    """Caches of one pod, with the reports on it."""

    def __init__(self, pod: pods.Pod, *, managed: bool = True) -> None:
        self.pods = {pod.key: pod}
        self.nodes: dict[ids.Key, nodes.Node] = {}
        self.classes = {ids.Key("gpu"): a_class("gpu", "example.com/gpu")}
        self.slices = {ids.Key("slice"): a_slice(managed=managed)}
        self.rules: dict[ids.Key, taint_rules.TaintRule] = {}
        self.events: list[tuple[str, str]] = []
        self.reporter = reporter.Reporter(self, self, clock.FakeClock())  # type: ignore[arg-type]
        self.bodies: list[Any] = []
        caches = extended_resource_pods.Caches(
            lambda: self.pods,
            lambda: self.nodes,
            lambda: self.classes,
            lambda: self.slices,
            lambda: self.rules,
        )
        self.reporting = extended_resource_pods.ExtendedResourcePodReporter(
            caches, self.reporter, clock.FakeClock()
        )

    def event(self, regarding: Any, reason: str, message: str, *, warning: bool) -> None:
        assert (regarding.kind, warning) == ("Pod", True)
        self.events.append((reason, message))

    def patch(self, _kind: Any, _name: str, body: Any, **_options: Any) -> None:
        self.bodies.append(body["status"]["conditions"][0])

    def report(self) -> list[Any]:
        """Report; return the conditions that are written."""
        self.bodies.clear()
        self.reporting.report()
        while self.reporter.write_next():
            pass
        return self.bodies


@pytest.mark.parametrize("resource", ["example.com/gpu", f"{IMPLICIT}gpu"])
def test_a_pod_that_requests_a_managed_class_gets_condition_and_event(resource: str) -> None:
    world = World(a_pod(resource))
    (condition,) = world.report()
    assert (condition["type"], condition["reason"]) == ("ration.dev/Allocated", "NotConverted")
    assert condition["message"] == (
        f"requests {resource}=2, which kube-scheduler allocates by DeviceClass gpu, and the "
        "controller allocates devices of that class, by ResourceClaims alone. Label DeviceClass "
        "gpu with ration.dev/convert=true and create the pod again, for the admission webhook to "
        "convert it; or use a ResourceClaim for the class in the pod, or leave these devices to "
        "kube-scheduler"
    )
    assert world.events == [("NotConverted", condition["message"])]


def test_a_pod_is_reported_once() -> None:
    world = World(a_pod("example.com/gpu"))
    world.report()
    world.report()
    assert len(world.events) == 1


def test_a_device_taint_rule_makes_the_devices_of_a_class_managed() -> None:
    world = World(a_pod("example.com/gpu"), managed=False)
    assert world.report() == []
    world.rules = {ids.Key("rule"): taint_rules.parse(RULE)}
    assert len(world.report()) == 1


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("example.com/nic"),
        a_pod("nvidia.com/gpu"),
        a_pod("example.com/gpu", nodeName="node-a"),
        objects.pod("web", resourceClaims=[]),
    ],
)
def test_a_pod_that_waits_for_something_else_is_not_reported(pod: pods.Pod) -> None:
    world = World(pod)
    assert (world.report(), world.events) == ([], [])


def test_the_condition_goes_once_it_does_not_apply() -> None:
    world = World(a_pod("example.com/gpu"))
    world.report()
    bound = a_pod("example.com/gpu", nodeName="node-a")
    world.pods = {bound.key: bound}
    assert world.report() == [{"type": "ration.dev/Allocated", "$patch": "delete"}]
    assert world.report() == []


def test_a_pod_with_claims_gets_the_event_alone() -> None:
    entry = {"name": "gpu", "resourceClaimName": "c"}
    world = World(a_pod("example.com/gpu", resourceClaims=[entry]))
    assert world.report() == []
    assert [reason for reason, _ in world.events] == ["NotConverted"]


def test_a_pod_of_a_labelled_class_is_told_that_it_was_not_converted() -> None:
    world = World(a_pod("example.com/gpu"))
    world.classes = {ids.Key("gpu"): a_class("gpu", "example.com/gpu", converted=True)}
    (condition,) = world.report()
    assert condition["message"].endswith(
        "The class has the label ration.dev/convert=true, and the pod was not converted: it was "
        "created before the label or while the admission webhook did not answer, or its namespace "
        "has the label ration.dev/convert=false. Create the pod again without that, or with a "
        "ResourceClaim for the class"
    )


def test_a_resource_that_a_device_plugin_serves_is_no_request_for_a_class() -> None:
    world = World(a_pod("example.com/gpu", "0/1 nodes: 1 Insufficient example.com/gpu."))
    world.nodes = {ids.Key("node-a"): a_node("2")}
    assert (world.report(), world.events) == ([], [])
    world.nodes = {ids.Key("node-a"): a_node("0")}
    assert len(world.report()) == 1


def test_a_selector_that_cannot_be_evaluated_selects_nothing() -> None:
    broken = device_classes.DeviceClass("gpu", ("device.(",))
    assert not extended_resource_pods.has_managed_device(broken, [a_slice(managed=True)])

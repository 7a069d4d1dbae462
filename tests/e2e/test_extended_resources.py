"""Pods that request extended resources: converted, kube-scheduler's, or a device plugin's."""

from collections.abc import Iterator
from typing import Any

import pytest

from driver import errors, names
from driver.kube import client, gvr
from tests.e2e import managed_devices, playground, release

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
cluster, field = release.cluster, release.field
Raw = dict[str, Any]
OTHER, PLUGIN = "gpu.example.com", "example.com/plugin"
WHOLE = 'device.driver == "gpu.ration.dev" && device.attributes["gpu.ration.dev"].type == "gpu"'
CLASSES: dict[str, Raw] = {
    "e2e-labelled": {names.CONVERT_LABEL: "true"},
    "e2e-unlabelled": {},
}
"""Labels of classes for whole GPUs by their names, which `example.com/<name>` stands for too."""


@pytest.fixture
def classes(field: playground.Playground) -> Iterator[None]:
    """Two classes of the controller's devices, and a device of kube-scheduler's with its own."""
    kube = field.kube
    for name, labels in CLASSES.items():
        selectors = [{"cel": {"expression": WHOLE}}]
        spec = {"selectors": selectors, "extendedResourceName": f"example.com/{name}"}
        kube.create(
            gvr.DEVICE_CLASSES, {"metadata": {"name": name, "labels": labels}, "spec": spec}
        )
    try:
        with managed_devices.unprepared(kube, field.cluster.nodes()[0], OTHER, "gpu", 1):
            yield
    finally:
        for name in CLASSES:
            kube.delete(gvr.DEVICE_CLASSES, name)


def implicit(device_class: str) -> str:
    """Return the extended resource that every DeviceClass has."""
    return names.CLASS_RESOURCE_PREFIX + device_class


def requesting(name: str, *resources: Raw) -> Raw:
    """Return a pod with a container for each entry of limits."""
    pod = release.a_pod(name)
    (container,) = pod["spec"]["containers"]
    pod["spec"]["containers"] = [
        {**container, "name": f"main-{index}", "resources": {"limits": limits}}
        for index, limits in enumerate(resources)
    ]
    return pod


def is_converted(pod: Raw) -> bool:
    return names.CONVERTED in pod["metadata"].get("labels", {})


def advertise(kube: client.KubeClient, node: str, count: str | None) -> None:
    """Have a node offer a resource, as a device plugin would; None takes it away."""
    status = {"capacity": {PLUGIN: count}, "allocatable": {PLUGIN: count}}
    kube.patch(gvr.NODES, node, {"status": status}, subresource="status")


def a_labelled_pod_is_converted(field: playground.Playground) -> None:
    explicit, other = {"example.com/e2e-labelled": "1"}, {implicit("e2e-labelled"): "2"}

    def created() -> bool:
        try:
            field.create(requesting("labelled", explicit, other))
        except errors.AlreadyExists:
            field.delete_pod("labelled")
            return False
        return is_converted(field.pod("labelled"))

    playground.until(created, 30, "the webhook knows the label")
    field.running("labelled", 120)
    allocations = [claim["status"] for claim in field.claims()]
    counts = [len(status["allocation"]["devices"]["results"]) for status in allocations]
    assert sorted(counts) == [1, 2]
    assert all(
        names.EXTENDED_RESOURCE_CLAIM not in claim["metadata"].get("annotations", {})
        for claim in field.claims()
    )


def a_pod_of_other_devices_is_kube_schedulers(field: playground.Playground) -> None:
    field.create(requesting("other", {implicit(OTHER): "1"}))

    def special() -> list[Raw]:
        return [
            claim
            for claim in field.claims()
            if claim["metadata"].get("annotations", {}).get(names.EXTENDED_RESOURCE_CLAIM)
            and claim.get("status", {}).get("allocation")
        ]

    playground.until(special, 60, "kube-scheduler allocates a claim of its own")
    assert not is_converted(field.pod("other"))


@pytest.mark.usefixtures("classes")
def test_pods_of_extended_resources_are_told_apart(
    field: playground.Playground,
) -> None:
    a_labelled_pod_is_converted(field)

    field.create(requesting("unlabelled", {"example.com/e2e-unlabelled": "1"}))
    (note,) = field.told("unlabelled", "NotConverted", 90)
    assert "Label DeviceClass e2e-unlabelled with ration.dev/convert=true" in note

    a_pod_of_other_devices_is_kube_schedulers(field)

    node = field.cluster.nodes()[0]
    advertise(field.kube, node, "1")
    try:
        field.create(requesting("plugin", {PLUGIN: "1"}))
        running = field.running("plugin")
        assert running["spec"]["nodeName"] == node
        assert not is_converted(running)
        assert not running["spec"].get("resourceClaims")
        field.delete_pod("plugin")
    finally:
        advertise(field.kube, node, None)
    for name in ("labelled", "other", "plugin"):
        assert field.events(name, "NotConverted") == []


@pytest.mark.usefixtures("classes")
def test_a_namespace_with_the_label_keeps_its_pods_unconverted(
    field: playground.Playground,
) -> None:
    label = {"metadata": {"labels": {names.CONVERT_LABEL: "false"}}}
    field.kube.patch(gvr.NAMESPACES, field.namespace, label)
    field.create(requesting("excluded", {"example.com/e2e-labelled": "1"}))
    assert not is_converted(field.pod("excluded"))
    (note,) = field.told("excluded", "NotConverted", 90)
    assert "its namespace has the label ration.dev/convert=false" in note


@pytest.mark.usefixtures("classes")
def test_more_devices_than_a_claim_may_have_are_refused_with_the_field(
    field: playground.Playground,
) -> None:
    pod = requesting("many", {implicit("e2e-labelled"): "33"})
    with pytest.raises(errors.ApiError, match="expected a whole number, 32 at most"):
        playground.until(lambda: refused_or_gone(field, pod), 30, "the webhook knows the label")


def refused_or_gone(field: playground.Playground, pod: Raw) -> bool:
    """Create a pod that is to be refused, and delete it where it was not."""
    field.create(pod)
    field.delete_pod(pod["metadata"]["name"])
    return False

"""Devices of a driver that knows nothing of Ration pass to the controller and back."""

from collections.abc import Iterator
from typing import Any

import pytest

from driver import errors, names
from driver.kube import client, gvr
from hack.cluster import api, chart
from tests.e2e import managed_devices, playground, release

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
cluster = release.cluster
DRIVER = "nic.example.com"
MANAGED = managed_devices.managed(DRIVER)
Raw = dict[str, Any]


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    """A namespace beside devices of the other driver."""
    managed_devices.require_rules(cluster)
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    with managed_devices.unprepared(kube, cluster.nodes()[0], DRIVER, "nic", 2):
        ground = playground.Playground.open(cluster, kube)
        try:
            yield ground
        finally:
            chart.install(release.WHERE, MANAGED, managed_devices.NOWHERE)
            playground.until(lambda: taint(kube) is None, 120, "the rule is gone")
            release.install()
            ground.close()


def taint(kube: client.KubeClient) -> str | None:
    return managed_devices.rule_taint(kube, DRIVER)


def ask(field: playground.Playground, name: str) -> None:
    field.create(
        playground.a_claim(name, deviceClassName=DRIVER), release.a_pod(name, claims=(name,))
    )


def is_allocated(field: playground.Playground, name: str) -> bool:
    return field.device_of(name) is not None


def holds(field: playground.Playground, name: str) -> list[Raw]:
    """Return the entries by which the controller keeps an allocation."""
    reserved = field.claim(name)["status"].get("reservedFor") or []
    return [entry for entry in reserved if entry["resource"] == names.HOLD_RESOURCE]


def test_a_driver_passes_to_the_controller_and_back_through_handovers(
    field: playground.Playground,
) -> None:
    kube = field.kube
    ask(field, "before")
    playground.until(lambda: is_allocated(field, "before"), 30, "kube-scheduler allocates")
    assert not holds(field, "before")

    chart.install(release.WHERE, MANAGED)
    playground.until(lambda: taint(kube) == names.HANDOVER_TAINT, 90, "the handover begins")
    ask(field, "within")
    playground.until(lambda: taint(kube) == names.ALLOCATOR_TAINT, 60, "the handover ends")
    assert not (is_allocated(field, "within") and not holds(field, "within"))

    chart.install(release.WHERE, MANAGED, managed_devices.NOWHERE)
    playground.until(lambda: taint(kube) == names.HANDOVER_TAINT, 90, "it begins to pass back")
    playground.until(lambda: taint(kube) is None, 60, "the rule is gone")


def test_nobody_else_makes_a_rule_that_says_who_allocates(field: playground.Playground) -> None:
    kube = field.kube
    spec = {
        "deviceSelector": {"driver": DRIVER},
        "taint": {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"},
    }
    with pytest.raises(errors.Forbidden, match="only the Ration controller"):
        kube.create(gvr.DEVICE_TAINT_RULES, {"metadata": {"name": "mine"}, "spec": spec})
    cordon = {**spec, "taint": {"key": names.CORDONED_TAINT, "effect": "NoSchedule"}}
    kube.create(gvr.DEVICE_TAINT_RULES, {"metadata": {"name": "mine"}, "spec": cordon})
    kube.delete(gvr.DEVICE_TAINT_RULES, "mine")

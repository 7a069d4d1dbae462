"""BB-4: ResourceSlices come, stay, go with the plugin, and come back."""

import time
from typing import Any

import pytest

from driver.kube import gvr
from hack.cluster import control
from tests.blackbox.catalogue import CLUSTER, NODE, case
from tests.blackbox.ground import room, seat
from tests.blackbox.slice_versions import settled, written
from tests.e2e import playground

until = playground.until
STABLE_S = 20
WIPE_S = 45
"""Longer than the kubelet waits before it removes slices."""


@pytest.fixture(autouse=True)
def mended(here: seat.Seat) -> Any:
    yield
    here.mend()


@case("BB-4.1", f"{CLUSTER}: must manage ResourceSlices")
def test_slices_are_the_nodes_own_and_are_left_alone(here: seat.Seat) -> None:
    node = here.kube.get(gvr.NODES, here.node)
    previous = settled(here)
    names: list[str] = []
    for slice_ in here.slices():
        (owner,) = slice_["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Node", here.node)
        assert (owner["uid"], owner["controller"]) == (node["metadata"]["uid"], True)
        spec = slice_["spec"]
        pool = here.subject.device.pool.format(node=here.node)
        assert (spec["driver"], spec["nodeName"]) == (here.subject.driver, here.node)
        assert spec["pool"]["name"] == pool
        assert spec["pool"]["resourceSliceCount"] == len(previous)
        names += [device["name"] for device in spec.get("devices", ())]
    assert len(set(names)) == len(names) >= here.subject.device.count
    assert len({entry["spec"]["pool"]["generation"] for entry in here.slices()}) == 1
    here.stays(lambda: written(here), STABLE_S, 2)


@case("BB-4.2", f"{NODE}: must be removed on kubelet startup")
def test_a_kubelet_that_starts_removes_slices_that_nobody_stands_for(here: seat.Seat) -> None:
    here.stop_kubelet()
    here.programs.stop()
    previous = written(here)
    assert previous
    here.stays(lambda: written(here), 3)
    here.start_kubelet()
    here.gone(30)


@case("BB-4.3", "F-1: ours")
def test_slices_that_a_kubelet_removed_are_published_again(here: seat.Seat) -> None:
    previous = {slice_["metadata"]["uid"] for slice_ in here.slices()}
    devices = set(here.devices())
    here.restart_kubelet()
    until(
        lambda: (
            here.slices() and not previous & {slice_["metadata"]["uid"] for slice_ in here.slices()}
        ),
        90,
        "all slices are new",
    )
    until(lambda: set(here.devices()) == devices, 60, "all devices are back")


@case("BB-4.4", f"{NODE}: must be removed after plugin unregistration")
def test_slices_go_when_the_plugin_leaves(here: seat.Seat) -> None:
    here.programs.stop()
    here.gone()
    here.stays(here.slices, 3)


@case("BB-4.5", f"{NODE}: must be removed if plugin stops after registration")
def test_slices_go_when_the_plugin_dies(here: seat.Seat) -> None:
    here.programs.kill()
    assert here.slices()
    here.gone()


@case("BB-4.6", f"{NODE}: must be removed if plugin is unresponsive after registration")
def test_slices_go_when_a_registered_plugin_never_serves(here: seat.Seat) -> None:
    here.programs.stop()
    here.proxy.hide(service=True)
    previous = here.registrations()
    here.programs.start()
    here.registered_after(previous)
    until(here.devices, 30, "the plugin publishes")
    time.sleep(3)
    key = f"bb-{here.subject.name}-plugin"
    control.freeze(here.places.where, key, here.node)
    try:
        here.gone()
    finally:
        control.thaw(here.places.where, key, here.node)


@case("BB-4.7", f"{NODE}: must not be removed if plugin restarts quickly enough")
def test_slices_stay_when_the_plugin_is_soon_back(here: seat.Seat) -> None:
    previous = settled(here)
    registered = here.registrations()
    here.programs.kill()
    time.sleep(5)
    here.programs.start()
    here.registered_after(registered)
    assert written(here) == previous
    here.stays(lambda: written(here), WIPE_S, 2)


@case("BB-4.8", f"{CLUSTER}: runs pod after driver starts")
def test_a_pod_waits_for_the_driver(here: seat.Seat, field: room.Room) -> None:
    here.programs.stop()
    here.gone()
    field.claim("patient")
    field.pod("patient", "patient")
    field.stays_pending("patient", 3)
    here.programs.start()
    field.running("patient", 120)
    assert len(field.has("patient")) == 1


@case("BB-4.9", "F-15: ours")
def test_a_slice_that_somebody_deleted_is_published_again(here: seat.Seat) -> None:
    devices = set(here.devices())
    victim = here.slices()[0]["metadata"]
    here.kube.delete(gvr.RESOURCE_SLICES, victim["name"])

    def back() -> bool:
        uids = {slice_["metadata"]["uid"] for slice_ in here.slices()}
        return victim["uid"] not in uids and set(here.devices()) == devices

    until(back, 60, "all devices are back")

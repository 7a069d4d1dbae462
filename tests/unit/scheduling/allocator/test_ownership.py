import pytest

from driver.resources.dra import claims, slices
from driver.scheduling.allocator import ownership
from driver.scheduling.allocator.ownership import Ownership
from driver.scheduling.snapshot import cluster_state
from tests.support import allocation, snapshots
from tests.support.builders import objects

NIC = 'device.driver == "nic.example.com"'
BIG = f'device.capacity["{snapshots.DRIVER}"].memory.compareTo(quantity("1Ti")) > 0'
CLASSES = [objects.device_class("nic", NIC), objects.device_class("big", BIG)]


def world(*untainted: str) -> cluster_state.ClusterState:
    """A node with two GPUs, some without the allocator's taint, and a network card."""
    gpus = [
        objects.a_device(name, **({"taints": []} if name in untainted else {}))
        for name in ("gpu-0", "gpu-1")
    ]
    nic = objects.a_slice("node-a", [objects.a_device("nic-0", taints=[])], "nic.example.com")
    return snapshots.view(objects.a_slice("node-a", gpus), nic, found_classes=CLASSES)


def whose(view: cluster_state.ClusterState, *requests: objects.Raw) -> Ownership:
    return ownership.OwnershipResolver().ownership(view, objects.claim("c", *requests))


def of(name: str, *selectors: str, device_class: str = "") -> objects.Raw:
    chosen = {"deviceClassName": device_class} if device_class else {}
    return objects.a_request(name, 1, *selectors, **chosen)


def test_a_claim_for_devices_that_are_ours_to_allocate_is_ours() -> None:
    assert whose(world(), of("gpu")) is Ownership.OURS


def test_a_claim_for_other_devices_is_anothers() -> None:
    assert whose(world(), of("nic", device_class="nic")) is Ownership.FOREIGN


def test_a_claim_for_both_is_nobodys() -> None:
    assert whose(world(), of("gpu"), of("nic", device_class="nic")) is Ownership.MIXED


def test_kube_scheduler_goes_first_where_untainted_devices_fit() -> None:
    assert whose(world("gpu-1"), of("gpu")) is Ownership.SHARED
    assert whose(world(), of("any", device_class=snapshots.ANY)) is Ownership.SHARED


def test_devices_of_ours_without_the_taint_are_kube_schedulers() -> None:
    assert whose(world("gpu-0", "gpu-1"), of("gpu")) is Ownership.FOREIGN


def test_it_matters_not_who_holds_the_devices_now() -> None:
    view = world()
    for device in ("gpu-0", "gpu-1"):
        held = snapshots.holding(device, "node-a", device)
        view.set_claim(held.key, held)
    assert whose(view, of("gpu")) is Ownership.OURS


def test_kube_scheduler_goes_first_for_alternatives_of_several_owners() -> None:
    ways = [objects.a_way("gpu"), objects.a_way("nic", deviceClassName="nic")]
    assert whose(world(), objects.first_available("a", *ways)) is Ownership.SHARED
    ours = [objects.a_way("two", 2), objects.a_way("one")]
    assert whose(world(), objects.first_available("a", *ours)) is Ownership.OURS


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (f'device.driver == "{snapshots.DRIVER}" && false', Ownership.OURS),
        (f"device.driver == '{snapshots.DRIVER}' && false", Ownership.OURS),
        ("false", Ownership.FOREIGN),
        (f'device == device && device.driver == "{snapshots.DRIVER}"', Ownership.OURS),
    ],
)
def test_selectors_decide_the_owner_when_no_device_fits(selector: str, expected: Ownership) -> None:
    assert whose(world(), of("a", selector, device_class=snapshots.ANY)) is expected


def test_a_class_that_is_missing_is_not_ours_unless_the_request_names_us() -> None:
    assert whose(world(), of("a", device_class="nope")) is Ownership.FOREIGN
    named = of("a", f'device.driver == "{snapshots.DRIVER}"', device_class="nope")
    assert whose(world(), named) is Ownership.OURS


def test_a_claim_that_asks_nothing_is_not_ours() -> None:
    nothing = claims.parse({"metadata": {"name": "c"}, "spec": {"devices": {}}})
    assert ownership.OwnershipResolver().ownership(world(), nothing) is Ownership.FOREIGN


def test_a_change_of_pools_or_classes_clears_the_cache() -> None:
    view, owners = world(), ownership.OwnershipResolver()
    claim, big = objects.claim("c", of("gpu")), objects.claim("d", of("a", device_class="big"))
    assert owners.ownership(view, claim) is Ownership.OURS
    assert owners.ownership(view, big) is Ownership.OURS
    bare = objects.a_slice("node-a", [objects.a_device("gpu-0", taints=[])])
    parsed = slices.parse(bare)
    view.set_slice(parsed.name, parsed)
    assert owners.ownership(view, claim) is Ownership.FOREIGN
    view.set_device_class("big", objects.device_class("big", NIC))
    assert owners.ownership(view, big) is Ownership.FOREIGN


def test_a_claim_of_an_extended_resource_is_left_to_kube_scheduler() -> None:
    special, plain = objects.extended_resource_claim(), objects.claim("plain")
    pod = objects.pod("other", special.name, plain.name)
    split = ownership.OwnershipResolver().split_claims(world(), pod, [special, plain])
    assert split == ownership.ClaimSplit((plain,))


def test_devices_of_a_claim_of_an_extended_resource_are_in_use() -> None:
    held = objects.extended_resource_claim(status=objects.allocated("node-a", "gpu-0"))
    view = snapshots.view(objects.a_slice("node-a", 2), taken=[held])
    assert allocation.devices(allocation.decide(view, objects.claim("c"))) == ["gpu-1"]

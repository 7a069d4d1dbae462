"""Fields of feature gates, in small worlds: ours decides as kube-scheduler's allocator does."""

from typing import Any

import pytest

from tests.oracle import differential, draw_claims, draw_slices, ours, scenarios
from tests.support.builders import objects

Raw = dict[str, Any]
GPU = draw_slices.DRIVERS[0]
YES, NO = differential.Kind.AGREE_YES, differential.Kind.AGREE_NO


def a_claim(count: int = 1, constraint: str = "", **exactly: Any) -> Raw:
    body = {"deviceClassName": GPU, "allocationMode": "ExactCount", "count": count, **exactly}
    constraints = [{constraint: f"{GPU}/numa"}] if constraint else None
    return objects.a_claim("claim", {"name": "r0", "exactly": body}, constraints=constraints)


def verdict(
    judging: differential.Judges,
    claim: Raw,
    devices: list[Raw],
    *gates: str,
    sets: Raw | None = None,
) -> differential.Kind:
    """Return the verdict on a claim for a node's devices, with some gates on."""
    published = [objects.a_slice("node-a", devices, GPU)]
    if sets:
        published = objects.counting(sets, devices)
        for item in published:
            item["spec"]["driver"] = GPU
    cluster = scenarios.Cluster(
        {"node-a": {}}, published, [draw_claims.a_class(GPU)], features=dict.fromkeys(gates, True)
    )
    world = scenarios.World(cluster, (claim,))
    return differential.again(world, ours.decide, judging).kind


def numbered(*values: Any) -> list[Raw]:
    """Devices with a value of `numa`, or a list of values."""
    return [
        {"name": f"gpu-{index}", "attributes": {"numa": objects.a_value(value)}}
        for index, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("constraint", "values", "kind"),
    [
        ("matchAttribute", ([0, 1], [1, 2], 1), YES),
        ("matchAttribute", ([0, 1], [1, 2], [0, 2]), NO),
        ("matchAttribute", ([0, 1], 1, "1"), NO),
        ("distinctAttribute", ([0, 1], [2, 3], 4), YES),
        ("distinctAttribute", ([0, 1], [1, 2], 4), NO),
    ],
)
def test_lists_agree_by_a_common_element_and_differ_by_none(
    judging: differential.Judges, constraint: str, values: tuple[Any, ...], kind: differential.Kind
) -> None:
    devices = numbered(*values)
    assert verdict(judging, a_claim(3, constraint), devices, "DRAListTypeAttributes") is kind


@pytest.mark.parametrize(
    ("span", "amount", "kind"),
    [
        ({"min": "250m", "step": "250m"}, "600m", YES),
        ({"min": "250m", "max": "500m", "step": "250m"}, "600m", NO),
        ({"min": "1", "max": "3", "step": "500m"}, "1100m", YES),
        ({"min": "500m", "max": "2200m", "step": "500m"}, "2100m", NO),
        ({"min": "1500m"}, "1m", YES),
    ],
)
def test_fractional_ranges_are_rounded_to_their_step(
    judging: differential.Judges, span: Raw, amount: str, kind: differential.Kind
) -> None:
    cores = {"value": "4", "requestPolicy": {"default": span["min"], "validRange": span}}
    shared = {"name": "shares", "allowMultipleAllocations": True, "capacity": {"cores": cores}}
    claim = a_claim(capacity={"requests": {"cores": amount}})
    assert verdict(judging, claim, [shared], "DRAFractionalCapacityRange") is kind


@pytest.mark.parametrize(
    ("groups", "kind"),
    [
        (("a", "a b", "a c"), YES),
        (("a b", "b c", "c a"), NO),
        (("", "", ""), YES),
        (("a", "a", ""), NO),
    ],
)
def test_devices_of_a_counter_set_share_a_compatibility_group(
    judging: differential.Judges, groups: tuple[str, ...], kind: differential.Kind
) -> None:
    devices = [objects.drawing(f"part-{index}", "gpu", slots="1") for index in range(len(groups))]
    for device, words in zip(devices, groups, strict=True):
        device["taints"] = []
        if words:
            device["consumesCounters"][0]["compatibilityGroups"] = words.split()
    sets = {"gpu": {"slots": "8"}}
    gate = "DRADeviceCompatibilityGroups"
    assert verdict(judging, a_claim(3), devices, gate, sets=sets) is kind


def test_a_partition_type_of_a_slice_changes_no_allocation(judging: differential.Judges) -> None:
    sets = {"gpu": {"slots": "8"}}
    device = {**objects.drawing("part", "gpu", slots="1"), "taints": []}
    published = objects.counting(sets, [device])
    for item in published:
        item["spec"]["driver"] = GPU
    published[1]["spec"]["partitionTypeAttribute"] = f"{GPU}/type"
    cluster = scenarios.Cluster({"node-a": {}}, published, [draw_claims.a_class(GPU)])
    world = scenarios.World(cluster, (a_claim(),))
    assert differential.again(world, ours.decide, judging).kind is YES

"""Every invariant holds of a world that is well, and fails of one that is not."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from driver import ids
from driver.resources.core import node_selectors
from driver.resources.dra import claims, slices
from tests.chaos import invariants, seen
from tests.support.builders import allocated_claims

GPU, UID, NODE = "GPU-1", "5c7d1f6e-0000-4000-8000-000000000001", "node-0"
RULE = invariants.Rule
WELL = invariants.Baseline({NODE: frozenset({"gpu-0"})})


def a_held(number: int = 1, *units: seen.Unit, **more: Any) -> seen.Held:
    created = units or (seen.Unit(GPU),)
    gpus = frozenset(unit.gpu for unit in created)
    whole = seen.Held(f"{UID[:-1]}{number}", f"ns/c{number}", done=True, gpus=gpus, units=created)
    return dataclasses.replace(whole, **more)


def a_node(*held: seen.Held, **more: Any) -> seen.Node:
    specs = frozenset(held.uid for held in held if held.done)
    fields = {"specs": specs, "gpus": (seen.Gpu(GPU, memory=80 << 30),), **more}
    return seen.Node(NODE, held, **fields)


def a_slice(*devices: str, taints: tuple[slices.Taint, ...] = (), count: int = 1) -> slices.Slice:
    created = tuple(slices.Device(ids.DeviceName(device), taints=taints) for device in devices)
    reach = node_selectors.DeviceReach(node=ids.NodeName(NODE))
    return slices.Slice("s", "gpu.ration.dev", NODE, 1, count, reach, created)


def a_world(*nodes: seen.Node, **more: Any) -> seen.World:
    fields = {"slices": (a_slice("gpu-0"),), "nodes_ready": frozenset({NODE}), **more}
    return seen.World(nodes or (a_node(),), **fields)


def rules(world: seen.World) -> list[invariants.Rule]:
    return [problem.rule for problem in invariants.problems(world, WELL)]


def share(memory: int = 10, compute: int = 20, sharing: str = "mps") -> seen.Unit:
    return seen.Unit(GPU, frozenset(), sharing, memory << 30, compute)


def part(start: int, size: int) -> seen.Unit:
    return seen.Unit(GPU, frozenset(range(start, start + size)))


def test_a_world_that_is_well_has_no_problems() -> None:
    assert rules(a_world()) == []


def test_components_run() -> None:
    assert rules(a_world(conditions={"etcd": "dead", "kubelet.node-0": "running"})) == [
        RULE.PROCESS
    ]


def test_a_controller_leads() -> None:
    assert rules(a_world(lease_age_s=9.0)) == [RULE.LEADER]


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"nodes_ready": frozenset()}, RULE.NODE),
        ({"slices": ()}, RULE.SLICES),
        ({"slices": (a_slice("gpu-0", "gpu-1"),)}, RULE.SLICES),
        ({"slices": (a_slice("gpu-0", count=2),)}, RULE.SLICES),
        (
            {"slices": (a_slice("gpu-0", taints=(slices.Taint("ration.dev/xid", "79", "x"),)),)},
            RULE.TAINTS,
        ),
    ],
)
def test_nodes_publish_what_they_have(more: Mapping[str, Any], rule: invariants.Rule) -> None:
    assert rules(a_world(**more)) == [rule]


def test_the_allocators_own_taint_says_nothing_of_health() -> None:
    own = slices.Taint("ration.dev/allocator", "controller", "NoSchedule")
    assert rules(a_world(slices=(a_slice("gpu-0", taints=(own,)),))) == []


@pytest.mark.parametrize(
    ("phase", "leaving", "results"),
    [
        ("Pending", False, [RULE.POD_WAITS]),
        ("Running", True, [RULE.POD_STAYS]),
        ("Running", False, []),
        ("Failed", False, []),
    ],
)
def test_pods_come_and_go(phase: str, leaving: bool, results: list[invariants.Rule]) -> None:  # noqa: FBT001 - a parameter
    assert rules(a_world(pods=(seen.Pod("p", "u", "", phase, leaving),))) == results


@pytest.mark.parametrize(
    ("unit", "other", "collide"),
    [
        (seen.Unit(GPU), seen.Unit(GPU), True),
        (seen.Unit(GPU), seen.Unit("GPU-2"), False),
        (seen.Unit(GPU), share(), True),
        (seen.Unit(GPU), part(4, 2), True),
        (part(0, 2), part(2, 2), False),
        (part(0, 4), part(2, 2), True),
        (part(0, 1), share(), True),
        (share(), share(), False),
        (share(), share(sharing="time-slicing"), True),
        (share(60), share(30), True),
        (share(compute=60), share(compute=50), True),
    ],
)
def test_no_part_of_a_gpu_is_in_two_claims(
    unit: seen.Unit,
    other: seen.Unit,
    collide: bool,  # noqa: FBT001 - a parameter
) -> None:
    node = a_node(a_held(1, unit), a_held(2, other))
    assert bool(list(invariants.overlaps(node))) == collide


def test_a_claim_can_have_two_shares_of_a_gpu() -> None:
    assert not list(invariants.overlaps(a_node(a_held(1, share(), share()))))


def test_prepared_claims_have_specs_and_nobody_else() -> None:
    assert [spec.rule for spec in invariants.specs(a_node(a_held(), specs=frozenset()))] == [
        RULE.SPEC
    ]
    assert [spec.rule for spec in invariants.specs(a_node(specs=frozenset({UID})))] == [RULE.SPEC]
    half = a_held(done=False)
    assert not list(invariants.specs(a_node(half)))
    assert not list(invariants.specs(a_node(half, specs=frozenset({half.uid}))))


def with_gpu(*held: seen.Held, **more: Any) -> seen.Node:
    return a_node(*held, gpus=(seen.Gpu(GPU, memory=80 << 30, **more),))


MIG = a_held(1, part(0, 2), places=frozenset({(GPU, 0, 2)}))
ALONE = a_held(1, share(), alone=frozenset({GPU}))
TURN = a_held(1, share(sharing="time-slicing"), turns={GPU: 3})
Check = Callable[[seen.Node], Any]


@pytest.mark.parametrize(
    ("check", "node", "holds"),
    [
        (invariants.mig, with_gpu(MIG, mig=True, instances=frozenset({(0, 2)})), True),
        (invariants.mig, with_gpu(MIG), False),
        (invariants.mig, with_gpu(mig=True, instances=frozenset({(0, 2)})), False),
        (invariants.mig, with_gpu(mig=True), False),
        (invariants.modes, with_gpu(ALONE, compute_mode=3), True),
        (invariants.modes, with_gpu(ALONE), False),
        (invariants.modes, with_gpu(compute_mode=3), False),
        (invariants.turns, with_gpu(TURN, timeslice=3), True),
        (invariants.turns, with_gpu(TURN), False),
        (invariants.turns, with_gpu(timeslice=3), False),
    ],
)
def test_hardware_is_as_recorded(check: Check, node: seen.Node, holds: bool) -> None:  # noqa: FBT001 - a parameter
    assert (not list(check(node))) == holds


def test_hardware_under_a_claim_that_is_being_prepared_or_was_reset_is_not_judged() -> None:
    half = dataclasses.replace(ALONE, done=False)
    assert not list(invariants.modes(with_gpu(half)))
    scarred = dataclasses.replace(with_gpu(ALONE), scarred=frozenset({GPU}))
    assert not list(invariants.modes(scarred))


def test_daemons_run_for_claims_that_want_them_and_for_nobody_else() -> None:
    served = a_held(1, share(), serves=frozenset({GPU}))
    on = frozenset({GPU})
    well = a_node(served, wanted=on, running=on, ready=on, shm=on)
    assert not list(invariants.daemons(well))
    for gone in ("wanted", "running", "ready", "shm"):
        broken = dataclasses.replace(well, **{gone: frozenset()})  # type: ignore[arg-type]
        assert list(invariants.daemons(broken))
    assert list(invariants.daemons(a_node(running=on, shm=on)))


def test_nothing_lies_about() -> None:
    node = a_node(strays=("cdi/.a.json.new", "state/claims/a.json.damaged-1"), sockets=2)
    results = [problem.rule for problem in invariants.left_over(node)]
    assert results == [RULE.SOCKETS, RULE.STRAY, RULE.DAMAGED]
    away = list(invariants.left_over(a_node(registered=False)))
    assert [problem.rule for problem in away] == [RULE.SOCKETS]


def an_allocated_claim(user: str) -> claims.Claim:
    result = dataclasses.replace(
        allocated_claims.a_result("gpu-0"), device=claims.DeviceId("gpu.ration.dev", NODE, "gpu-0")
    )
    claim = allocated_claims.an_allocated_claim(result, uid=ids.ClaimUid(UID))
    return dataclasses.replace(claim, consumers=(claims.Consumer("", "pods", "p", user),))


def test_running_processes_have_records_and_records_have_claims() -> None:
    pod, claim = seen.Pod("p", "u", NODE, "Running", leaving=False), an_allocated_claim("u")
    assert rules(a_world(a_node(a_held()), pods=(pod,), claims=(claim,))) == []
    assert rules(a_world(pods=(pod,), claims=(claim,))) == [RULE.RECORD]
    assert rules(a_world(a_node(a_held()))) == [RULE.CLAIM]


def test_a_record_is_read_in_terms_of_hardware() -> None:
    instance = {"gpu": GPU, "profile_id": 19, "placement": {"start": 2, "size": 2}, "uuid": None}
    device = {"gpu": GPU, "admin_access": False, "edits": {"instance": instance}, "terms": None}
    admin = {"gpu": "GPU-2", "admin_access": True, "edits": {"instance": None}, "terms": None}
    record = {
        "claim": {"uid": UID, "namespace": "ns", "name": "c"},
        "state": "completed",
        "devices": [device, admin],
        "steps": [
            {"act": "compute-exclusive", "gpu": GPU, "arguments": {}},
            {"act": "mps-serve", "gpu": GPU, "arguments": {}},
            {"act": "time-slice", "gpu": GPU, "arguments": {"interval": "Long"}},
        ],
    }
    held = seen.held(record)
    assert held.units == (part(2, 2),)
    assert held.places == {(GPU, 2, 2)}
    assert held.gpus == held.alone == held.serves == {GPU}
    assert (held.done, held.turns) == (True, {GPU: 3})

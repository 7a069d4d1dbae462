"""Invariants of deciding, on random clusters (docs/explanation/invariants.md)."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.resources.dra import claims, pools
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.properties import drawing, history
from tests.support import snapshots
from tests.support.builders import objects

sizes = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.integers(0, 4), max_size=4)
demands = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), max_size=8)


def decide(
    view: snapshot.Snapshot, number: int, counts: list[int]
) -> allocator_types.Placement | allocator_types.Unschedulable:
    results = tuple(
        objects.claim(f"claim-{number}-{index}", objects.a_request(count=count))
        for index, count in enumerate(counts)
    )
    pod = objects.pod(f"pod-{number}", *(claim.name for claim in results))
    return dra_allocator.allocate(view, allocator_types.Workload(pod, results), snapshots.DECIDING)


def holding(name: str, placement: allocator_types.Placement) -> list[claims.Claim]:
    by_claim: dict[str, list[str]] = {}
    for pick in placement.assignments:
        by_claim.setdefault(f"{name}-{pick.claim_index}", []).append(pick.device.device)
    return [snapshots.holding(claim, placement.node, *names) for claim, names in by_claim.items()]


@given(sizes, demands)
def test_no_device_is_given_twice(fleet: dict[str, int], requests: list[list[int]]) -> None:
    held: list[claims.Claim] = []
    for number, counts in enumerate(requests):
        answer = decide(snapshots.fleet(fleet, *held), number, counts)
        if isinstance(answer, allocator_types.Placement):
            held.extend(holding(f"claim-{number}", answer))
    devices = [r.device for claim in held if claim.allocation for r in claim.allocation.results]
    assert len(devices) == len(set(devices))
    assert all(int(device.device.removeprefix("gpu-")) < fleet[device.pool] for device in devices)


@given(sizes, demands)
def test_a_pod_is_placed_exactly_when_some_node_has_enough_free(
    fleet: dict[str, int], requests: list[list[int]]
) -> None:
    """The brute-force oracle: plain counting, since every GPU is alike here."""
    free = dict(fleet)
    held: list[claims.Claim] = []
    for number, counts in enumerate(requests):
        answer = decide(snapshots.fleet(fleet, *held), number, counts)
        fits = any(count >= sum(counts) for count in free.values())
        assert isinstance(answer, allocator_types.Placement) is fits
        if isinstance(answer, allocator_types.Placement):
            free[answer.node] -= sum(counts)
            held.extend(holding(f"claim-{number}", answer))


@given(sizes, st.lists(st.integers(1, 3), min_size=1, max_size=3), st.randoms())
def test_equal_views_give_equal_answers(
    fleet: dict[str, int], counts: list[int], order: st.DrawFn
) -> None:
    shuffled = list(fleet.items())
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    first = decide(snapshots.fleet(fleet), 0, counts)
    assert decide(snapshots.fleet(dict(shuffled)), 0, counts) == first


@st.composite
def scenes(
    draw: st.DrawFn, most: int = 4
) -> tuple[list[drawing.Raw], list[allocator_types.Workload]]:
    """Return what is published, and pods that ask one after the other."""
    asking = [draw(drawing.workloads(number)) for number in range(draw(st.integers(1, most)))]
    return draw(drawing.published()), asking


def run(
    view: cluster_state.ClusterState, asking: Sequence[allocator_types.Workload]
) -> list[tuple[allocator_types.Workload, drawing.Written]]:
    """Place what can be placed; what was."""
    done = []
    for workload in asking:
        answer = dra_allocator.allocate(view, workload, snapshots.DECIDING)
        if isinstance(answer, allocator_types.Placement):
            written = drawing.written(view, workload, answer)
            drawing.put(view, written)
            done.append((workload, written))
    return done


@settings(max_examples=100)
@given(scenes())
def test_a_pod_gets_all_it_asks_on_one_node_or_nothing(
    scene: tuple[list[drawing.Raw], list[allocator_types.Workload]],
) -> None:
    view = drawing.fresh(scene[0])
    for workload, written in run(view, scene[1]):
        node = view.nodes[written.flight.node]
        reached = {
            claims.DeviceId(share.pool.driver, share.pool.name, device.name)
            for share in view.reachable_pools(node.name)
            for _, devices in share.slices
            for device in devices
        }
        for claim in workload.open_claims:
            allocation = written.flight.allocations[claim.key]
            assert {result.device for result in allocation.results} <= reached
            assert allocation.selector is None or allocation.selector.matches(
                node.name, node.labels
            )
            assert_answered(claim, [result.request for result in allocation.results])


def assert_answered(claim: claims.Claim, given_to: list[str]) -> None:
    """Each request by one of its ways, in full."""
    for request in claim.spec.requests:
        mine = [name for name in given_to if name.partition("/")[0] == request.name]
        assert len({*mine}) == 1
        (way,) = [way for way in request.alternatives_or_self if way.name == mine[0]]
        assert way.all_devices or len(mine) == way.count


@settings(max_examples=75)
@given(scenes())
def test_when_every_pod_is_gone_the_picture_is_as_it_was(
    scene: tuple[list[drawing.Raw], list[allocator_types.Workload]],
) -> None:
    published, asking = scene
    view = drawing.fresh(published)
    for _, written in run(view, asking):
        drawing.take_away(view, written)
    untouched = drawing.fresh(published)
    assert drawing.shown(view) == drawing.shown(untouched)
    for workload in asking:
        answer = dra_allocator.allocate(view, workload, snapshots.DECIDING)
        assert answer == dra_allocator.allocate(untouched, workload, snapshots.DECIDING)


@settings(max_examples=75)
@given(scenes(most=2))
def test_a_decision_changes_nothing_until_it_is_written(
    scene: tuple[list[drawing.Raw], list[allocator_types.Workload]],
) -> None:
    view = drawing.fresh(scene[0])
    previous = drawing.shown(view), view.revision, view.generation
    for workload in scene[1]:
        answer = dra_allocator.allocate(view, workload, snapshots.DECIDING)
        assert dra_allocator.allocate(view, workload, snapshots.DECIDING) == answer
    assert (drawing.shown(view), view.revision, view.generation) == previous


@settings(max_examples=75)
@given(scenes(), st.randoms(use_true_random=False))
def test_the_order_in_which_slices_came_decides_nothing(
    scene: tuple[list[drawing.Raw], list[allocator_types.Workload]], chance: Any
) -> None:
    published, asking = scene
    shuffled = [*published]
    chance.shuffle(shuffled)
    state, other = drawing.fresh(published), drawing.fresh(shuffled)
    writes = [written for _, written in run(state, asking)]
    assert [written for _, written in run(other, asking)] == writes


@settings(max_examples=100)
@given(scenes(most=8))
def test_no_device_capacity_or_counter_is_given_beyond_what_there_is(
    scene: tuple[list[drawing.Raw], list[allocator_types.Workload]],
) -> None:
    """Summed up from what was written alone."""
    view = drawing.fresh(scene[0])
    results = [
        result
        for _, written in run(view, scene[1])
        for allocation in written.flight.allocations.values()
        for result in allocation.results
        if not result.admin_access
    ]
    for pool in view.pools.values():
        assert_not_beyond(pool, [result for result in results if result.device.pool == pool.name])


def assert_not_beyond(pool: pools.Pool, results: list[claims.Result]) -> None:
    drawn = dict.fromkeys(pool.counters, 0)
    for device in (device for slice_ in pool.slices for device in slice_.devices):
        mine = [result for result in results if result.device.device == device.name]
        assert device.allow_multiple or len(mine) <= 1
        for name, capacity in device.capacity.items() if device.allow_multiple else ():
            assert sum(result.consumed[name].nanos for result in mine) <= capacity.value.nanos
        for use in device.consumes if mine else ():
            for name, amount in use.counters.items():
                drawn[use.set, name] += amount.nanos
    assert all(drawn[key] <= amount for key, amount in pool.counters.items())


@st.composite
def shapes(draw: st.DrawFn) -> allocator_types.Workload:
    """One of a few pods that ask now and then; at times a node is to be left out."""
    asked_of = draw(
        st.sampled_from(
            [
                [objects.a_request()],
                [objects.a_request(count=2)],
                [objects.a_request("any", deviceClassName=snapshots.ANY, allocationMode="All")],
                [objects.a_request("any", 2, deviceClassName=snapshots.ANY)],
                [sharing("50Gi")],
                [sharing("20Gi"), objects.a_request()],
            ]
        )
    )
    claim = objects.claim("asking", *asked_of)
    avoid = draw(st.sampled_from([{}, {}, {history.NODES[0].name: "Insufficient foo"}]))
    return allocator_types.Workload(
        objects.pod("asking", claim.name), (claim,), avoided_nodes=avoid
    )


def sharing(memory: str) -> drawing.Raw:
    text = f'device.attributes["{snapshots.DRIVER}"].type == "gpu-share"'
    capacity = {"requests": {"memory": memory}}
    return objects.a_request("part", 1, text, deviceClassName=snapshots.ANY, capacity=capacity)


@settings(max_examples=150)
@given(st.lists(st.tuples(history.events, shapes()), max_size=15))
def test_cached_and_uncached_decisions_are_equal(
    history_events: list[tuple[history.Event, allocator_types.Workload]],
) -> None:
    """The same nodes, devices and reasons, whatever happened since the last question."""
    world, remembering = history.beginning(), dra_allocator.Allocator(snapshots.DECIDING)
    for event, workload in history_events:
        world.tell(event)
        answer = remembering.decide(world.view, workload)
        assert answer == dra_allocator.allocate(world.fresh(), workload, snapshots.DECIDING)

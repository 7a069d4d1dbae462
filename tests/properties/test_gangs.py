"""Places for gangs: all or nothing, no trace, the same every time, inside what is required."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from driver import ids
from driver.resources.core import pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import tentative, topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.snapshot import cluster_state
from tests.properties import drawing
from tests.support import snapshots
from tests.support.builders import gangs, objects

SIZES = st.lists(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=2), min_size=1, max_size=2),
    min_size=1,
    max_size=2,
)
LEVEL = st.sampled_from([None, gangs.BLOCK, gangs.RACK])


@st.composite
def members(draw: st.DrawFn) -> list[allocator_types.Workload]:
    """Workers, at times with a leader, in any order."""
    workloads = gangs.alike(draw(st.integers(1, 6)), draw(st.integers(1, 2)))
    if draw(st.booleans()):
        workloads.append(gangs.member("leader", draw(st.integers(0, 3)), cpu="60"))
    return draw(st.permutations(workloads))


@settings(max_examples=100)
@given(SIZES, members(), LEVEL, st.sampled_from([None, gangs.RACK]))
def test_all_or_nothing_inside_what_is_required_and_without_a_trace(
    sizes: list[list[list[int]]],
    gang: list[allocator_types.Workload],
    required: str | None,
    preferred: str | None,
) -> None:
    view = gangs.racks(sizes)
    previous, mark = drawing.shown(view), view.revision
    answer = gangs.place(view, gang, required, preferred)
    assert (drawing.shown(view), view.revision) == (previous, mark)
    assert gangs.place(gangs.racks(sizes), gang, required, preferred) == answer
    if isinstance(answer, gang_types.GangUnschedulable):
        assert all(shortage.fits < len(gang) for shortage in answer.shortages)
        return
    assert [member.workload.pod.name for member in answer.members] == [
        workload.pod.name for workload in gang
    ]
    devices = Counter(
        pick.device for placement in answer.placements for pick in placement.assignments
    )
    assert not devices or max(devices.values()) == 1
    if required is not None:
        assert len(gangs.domains(view, answer, gangs.LEVELS.index(required) + 1)) == 1


@settings(max_examples=150)
@given(drawing.published(), st.lists(st.integers(0, 9), min_size=1, max_size=4), st.data())
def test_a_gang_placement_is_valid_member_by_member(
    published: list[drawing.Raw], numbers: list[int], data: st.DataObject
) -> None:
    view = drawing.fresh(published)
    gang = [data.draw(drawing.workloads(index * 10 + n)) for index, n in enumerate(numbers)]
    previous = drawing.shown(view)
    answer = gang_placement.place_gang(gang, view, topology.Topology(), snapshots.DECIDING)
    assert drawing.shown(view) == previous
    if isinstance(answer, gang_types.GangUnschedulable):
        return
    for seat in answer.members:
        free_of_others(view, seat)
        drawing.put(view, drawing.written(view, seat.workload, seat.placement))
    for pool in view.pools.values():
        assert all(left >= 0 for left in view.remaining_counters(pool).values())


@settings(max_examples=60)
@given(drawing.published(), st.lists(st.integers(0, 3), min_size=2, max_size=5), st.data())
def test_the_gang_cache_changes_no_result(
    published: list[drawing.Raw], numbers: list[int], data: st.DataObject
) -> None:
    view, fill_cache = drawing.fresh(published), tentative.FillCache()
    shapes = [data.draw(drawing.workloads(index)) for index in range(4)]
    for turn, number in enumerate(numbers):
        names = [f"turn-{turn}-{index}" for index in range(2)]
        gang = [renamed(shapes[number], name) for name in names]
        answer = gang_placement.place_gang(
            gang, view, topology.Topology(), snapshots.DECIDING, fill_cache
        )
        assert answer == gang_placement.place_gang(
            gang, view, topology.Topology(), snapshots.DECIDING
        )
        if isinstance(answer, gang_types.GangPlacement):
            for seat in answer.members:
                drawing.put(view, drawing.written(view, seat.workload, seat.placement))


def renamed(workload: allocator_types.Workload, name: str) -> allocator_types.Workload:
    """The same of another pod with claims of its own."""
    claims = tuple(
        replace(
            open_claim, name=f"{name}-{index}", uid=ids.ClaimUid(objects.uid_of(f"{name}-{index}"))
        )
        for index, open_claim in enumerate(workload.open_claims)
    )
    entries = tuple(pods.PodClaim(str(index), claim.name) for index, claim in enumerate(claims))
    pod = replace(workload.pod, name=name, uid=ids.PodUid(objects.uid_of(name)), claims=entries)
    return allocator_types.Workload(pod, claims)


def free_of_others(view: cluster_state.ClusterState, seat: gang_types.MemberPlacement) -> None:
    """Assert that nobody else has the devices of a placement."""
    for pick in seat.placement.assignments:
        if not pick.result.admin_access and not pick.shared:
            assert not view.holders(pick.device)


@settings(max_examples=50)
@given(st.permutations(["node-a", "node-b", "node-c"]), st.integers(1, 5))
def test_equal_nodes_are_taken_by_name_in_whatever_order_they_came(
    order: list[str], count: int
) -> None:
    view = gangs.world(dict.fromkeys(order, 2), [gangs.node(name, "b", "r") for name in order])
    used = [*gangs.where(gangs.place(view, gangs.alike(count), gangs.RACK))]
    assert used == sorted(view.nodes)[: -(-count // 2)]


def test_a_taint_of_the_view_below_is_seen() -> None:
    sick = objects.a_device("gpu-0", taints=[objects.ALLOCATOR_TAINT, drawing.SICK])
    view = snapshots.view(objects.a_slice("node-a", [sick, objects.a_device("gpu-1")]))
    gangs.unseated(gangs.place(view, gangs.alike(2)))

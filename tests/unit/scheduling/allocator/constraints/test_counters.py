from collections.abc import Mapping

from driver.resources.dra import pools
from driver.scheduling.allocator import candidates, search
from driver.scheduling.allocator.constraints import counters
from driver.scheduling.snapshot import snapshot
from tests.support import snapshots
from tests.support.allocation import empty_tally, problem
from tests.support.builders import objects

ANY: objects.Raw = {"deviceClassName": snapshots.ANY}
SETS = {"gpu-0": {"slots": "4"}, "gpu-1": {"slots": "4"}}


def asking(view: snapshot.Snapshot, *requests: objects.Raw) -> search.Problem:
    """Return what every device of the node is offered to; each request in a claim of its own."""
    claims = [objects.claim(f"c-{index}", request) for index, request in enumerate(requests)]
    return problem(view, *claims)


def first(source: search.Problem) -> candidates.RequestCandidates:
    return source.candidates[0][0]


def cut(*sizes: str, taken: tuple[str, ...] = ()) -> snapshot.Snapshot:
    """Parts of GPU 0, and one whole GPU 1."""
    parts = [
        objects.drawing(f"part-{index}", "gpu-0", slots=size) for index, size in enumerate(sizes)
    ]
    whole = objects.drawing("other", "gpu-1", slots="4")
    held = [snapshots.holding(f"x-{name}", "node-a", name) for name in taken]
    return snapshots.view(*objects.counting(SETS, [*parts, whole]), taken=held)


def left(taken: counters.CounterTracker) -> Mapping[pools.Counter, int]:
    return {key: amount // 10**9 for key, amount in taken.remaining(0).items()}


def test_a_device_is_taken_once() -> None:
    source = asking(snapshots.fleet({"node-a": 2}), objects.a_request())
    taken = empty_tally(source)
    assert taken.try_allocate(0, first(source), 0)
    assert taken.is_used(0)
    assert not taken.try_allocate(0, first(source), 1)
    assert taken.try_allocate(1, first(source), 1)


def test_an_administrator_is_beside_others_but_not_twice_in_one_claim() -> None:
    view = snapshots.fleet({"node-a": 1})
    source = asking(view, objects.a_request(), objects.a_request("admin", adminAccess=True))
    plain, admin = source.candidates[0][0], source.candidates[1][0]
    taken = empty_tally(source)
    assert taken.try_allocate(0, plain, 0)
    assert taken.try_allocate(0, admin, 1)
    assert not taken.can_allocate(0, admin, 1)
    assert taken.can_allocate(0, admin, 2)


def test_an_administrator_needs_and_takes_no_counters() -> None:
    admin = objects.a_request("admin", adminAccess=True, **ANY)
    source = asking(cut("4", taken=("part-0",)), admin, objects.a_request(**ANY))
    taken = empty_tally(source)
    looking, working = source.candidates[0][0], source.candidates[1][0]
    assert taken.try_allocate(0, looking, 0)
    assert taken.try_allocate(1, looking, 0)
    assert taken.try_allocate(1, working, 1)
    assert dict(taken.consumed()) == {("gpu-1", "slots"): 4 * 10**9}


def test_a_device_of_an_administrator_goes_to_another_claim_and_not_twice_to_one() -> None:
    request, admin = objects.a_request(), objects.a_request("admin", adminAccess=True)
    source = asking(snapshots.fleet({"node-a": 1}), admin, request)
    taken = empty_tally(source)
    looking, working = source.candidates[0][0], source.candidates[1][0]
    assert taken.try_allocate(0, looking, 0)
    assert not taken.can_allocate(0, working, 0)
    assert taken.can_allocate(0, working, 1)


def test_parts_of_a_gpu_fit_as_long_as_its_counters_last() -> None:
    source = asking(cut("2", "1", "2", "1"), objects.a_request(**ANY))
    taken = empty_tally(source)
    assert [taken.try_allocate(index, first(source), 0) for index in range(4)] == [
        True,
        True,
        False,
        True,
    ]


def test_devices_in_use_consume_counters() -> None:
    source = asking(cut("2", "1", "3", taken=("part-0",)), objects.a_request(**ANY))
    taken = empty_tally(source)
    assert left(taken) == {("gpu-0", "slots"): 2, ("gpu-1", "slots"): 4}
    assert not taken.can_allocate(2, first(source), 0)
    assert taken.can_allocate(1, first(source), 0)


def test_an_overdrawn_counter_blocks_every_consumer_of_the_pools_counters() -> None:
    source = asking(cut("4", "4", "0", taken=("part-0", "part-1")), objects.a_request(**ANY))
    taken = empty_tally(source)
    assert left(taken) == {("gpu-0", "slots"): -4, ("gpu-1", "slots"): 4}
    assert not taken.can_allocate(3, first(source), 0)


def test_a_shared_device_draws_on_its_counters_once() -> None:
    share = {**objects.drawing("ts", "gpu-0", slots="3"), **objects.a_share_device("ts")}
    part = objects.drawing("part", "gpu-0", slots="1")
    source = asking(
        snapshots.view(*objects.counting(SETS, [share, part])), objects.a_request(**ANY)
    )
    taken, offer = empty_tally(source), first(source)
    assert taken.try_allocate(0, offer, 0)
    assert taken.try_allocate(0, offer, 1)
    assert taken.try_allocate(1, offer, 2)
    taken.release(0, offer)
    assert not taken.can_allocate(1, offer, 2)


def test_shares_fit_as_long_as_there_is_room() -> None:
    view = snapshots.view(
        objects.a_slice("node-a", [objects.a_share_device("ts")]),
        taken=[snapshots.holding("x", "node-a", objects.a_share("ts", memory="20Gi"))],
    )
    source = asking(view, objects.a_request(**ANY, capacity={"requests": {"memory": "30Gi"}}))
    taken = empty_tally(source)
    assert [taken.try_allocate(0, first(source), claim) for claim in range(3)] == [
        True,
        True,
        False,
    ]
    taken.release(0, first(source))
    assert taken.try_allocate(0, first(source), 3)


def test_released_counters_restore_the_state() -> None:
    source = asking(cut("2", "1", "2"), objects.a_request(**ANY))
    taken, untouched = empty_tally(source), empty_tally(source)
    for index in range(3):
        if taken.try_allocate(index, first(source), index):
            taken.release(index, first(source))
    assert [taken.can_allocate(number, first(source), 0) for number in range(4)] == [
        untouched.can_allocate(number, first(source), 0) for number in range(4)
    ]
    assert not any(taken.is_used(number) for number in range(4))
    assert [taken.try_allocate(number, first(source), 0) for number in range(3)] == [
        True,
        True,
        False,
    ]

from collections.abc import Mapping

from driver import reasons
from driver.scheduling.snapshot import snapshot
from tests.support import snapshots
from tests.support.allocation import counts, decide, devices, empty_tally, problem
from tests.support.builders import objects

ANY: objects.Raw = {"deviceClassName": snapshots.ANY}
SETS = {"gpu-0": {"slots": "8"}, "gpu-1": {"slots": "8"}}


def grouped(groups: Mapping[str, str], used: tuple[str, ...] = ()) -> snapshot.Snapshot:
    """Devices that draw on one counter set, with their groups as words, and one on another."""
    parts = [objects.drawing(name, "gpu-0", slots="1") for name in groups]
    for part, words in zip(parts, groups.values(), strict=True):
        part["consumesCounters"][0]["compatibilityGroups"] = words.split()
    parts.append(objects.drawing("other-gpu", "gpu-1", slots="1"))
    taken = [snapshots.holding(f"of-{name}", "node-a", name) for name in used]
    return snapshots.view(*objects.counting(SETS, parts), taken=taken)


def test_devices_of_one_claim_have_a_group_in_common() -> None:
    view = grouped({"a": "x", "b": "y", "c": "x y"})
    assert devices(decide(view, objects.claim("c", objects.a_request(count=2, **ANY)))) == [
        "a",
        "c",
    ]


def test_all_devices_of_a_counter_set_share_one_group() -> None:
    chain = grouped({"a": "x", "b": "x y", "c": "y"})
    assert devices(decide(chain, objects.claim("c", objects.a_request(count=3, **ANY)))) == [
        "a",
        "b",
        "other-gpu",
    ]


def test_an_allocated_device_admits_only_devices_of_its_groups() -> None:
    view = grouped({"used": "x", "b": "y", "c": "", "d": "x y"}, used=("used", "other-gpu"))
    assert devices(decide(view, objects.claim("c", objects.a_request(**ANY)))) == ["d"]


def test_devices_without_groups_are_compatible_with_each_other_alone() -> None:
    view = grouped({"used": "", "b": "x", "c": ""}, used=("used", "other-gpu"))
    assert devices(decide(view, objects.claim("c", objects.a_request(**ANY)))) == ["c"]


def test_another_counter_set_has_groups_of_its_own() -> None:
    view = grouped({"used": "x", "b": "y"}, used=("used",))
    assert devices(decide(view, objects.claim("c", objects.a_request(**ANY)))) == ["other-gpu"]


def test_incompatible_devices_are_counted_by_their_reason() -> None:
    view = grouped({"used": "x", "b": "y"}, used=("used", "other-gpu"))
    answer = decide(view, objects.claim("c", objects.a_request(**ANY)))
    assert counts(answer) == {
        reasons.Reason.DEVICE_IN_USE: 2,
        reasons.Reason.INCOMPATIBLE_GROUPS: 1,
    }


def test_a_released_device_leaves_its_counter_set_as_it_was() -> None:
    source = problem(grouped({"a": "x", "b": "y"}), objects.claim("c", objects.a_request(**ANY)))
    tracker, candidates = empty_tally(source), source.candidates[0][0]
    assert tracker.try_allocate(0, candidates, 0)
    assert not tracker.can_allocate(1, candidates, 0)
    tracker.release(0, candidates)
    assert tracker.can_allocate(1, candidates, 0)


def test_a_further_share_of_a_used_device_is_not_checked_again() -> None:
    shared = objects.drawing("shares", "gpu-0", slots="1")
    shared |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "4"}}}
    shared["consumesCounters"][0]["compatibilityGroups"] = ["x"]
    view = snapshots.view(*objects.counting(SETS, [shared]))
    two = objects.a_request(count=1, capacity={"requests": {"memory": "1"}}, **ANY)
    answer = decide(view, objects.claim("c", two), objects.claim("d", two))
    assert devices(answer) == ["shares", "shares"]


def test_devices_of_other_groups_are_not_equivalent() -> None:
    source = problem(
        grouped({"a": "x", "b": "y", "c": "y"}), objects.claim("c", objects.a_request(**ANY))
    )
    tracker = empty_tally(source)
    signatures = [tracker.group_signature(index) for index in range(3)]
    assert signatures[0] != signatures[1] == signatures[2]

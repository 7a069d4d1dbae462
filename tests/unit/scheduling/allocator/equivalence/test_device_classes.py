from typing import TYPE_CHECKING

from driver.resources.dra import claims
from driver.scheduling.allocator.equivalence import device_classes
from driver.scheduling.snapshot import snapshot
from tests.support import snapshots
from tests.support.allocation import empty_tally, problem
from tests.support.builders import objects

if TYPE_CHECKING:
    from driver.scheduling.allocator.constraints import counters

NUMA = f"{snapshots.DRIVER}/numa"
ZERO = f'device.attributes["{snapshots.DRIVER}"].numa == 0'


def kinds(
    view: snapshot.Snapshot, claim: claims.Claim | None = None, take: int | None = None
) -> list[int | None]:
    """The kind of each device, numbered as they come."""
    source = problem(
        view, claim or objects.claim("c", objects.a_request(deviceClassName=snapshots.ANY))
    )
    taken: counters.CounterTracker = empty_tally(source)
    if take is not None:
        assert taken.try_allocate(take, source.candidates[0][0], 0)
    device_equivalence = device_classes.DeviceEquivalence(
        source.devices, source.candidates, source.constraints, taken
    )
    numbers: dict[object, int] = {}
    return [
        None if kind is None else numbers.setdefault(kind, len(numbers))
        for kind in map(device_equivalence.equivalence_class, range(len(source.devices)))
    ]


def numa(*values: int) -> snapshot.Snapshot:
    look = [
        objects.with_values(objects.a_device(f"gpu-{index}"), numa=value)
        for index, value in enumerate(values)
    ]
    return snapshots.view(objects.a_slice("node-a", look))


def two_gpus(*parts: tuple[str, str], taken: tuple[str, ...] = ()) -> snapshot.Snapshot:
    """Parts by the set that they draw on, and the size of each."""
    drawings = [
        objects.drawing(f"part-{index}", name, slots=size)
        for index, (name, size) in enumerate(parts)
    ]
    held = [snapshots.holding(f"x-{name}", "node-a", name) for name in taken]
    sets = {"gpu-0": {"slots": "4"}, "gpu-1": {"slots": "4"}}
    return snapshots.view(*objects.counting(sets, drawings), taken=held)


def test_devices_that_nothing_tells_apart_are_alike() -> None:
    assert kinds(numa(0, 1, 0)) == [0, 0, 0]


def test_a_constraint_tells_by_its_attribute() -> None:
    claim = objects.claim("c", objects.a_request(), constraints=[objects.matching(NUMA)])
    assert kinds(numa(0, 1, 0), claim) == [0, 1, 0]


def test_a_request_tells_those_it_may_have_from_others() -> None:
    claim = objects.claim("c", objects.a_request("gpu", 1, ZERO), objects.a_request("any"))
    assert kinds(numa(0, 1, 0), claim) == [0, 1, 0]


def test_a_device_that_is_taken_is_like_no_other() -> None:
    assert kinds(numa(0, 0, 0), take=1) == [0, None, 0]


def test_usage_by_others_splits_an_equivalence_class() -> None:
    shares = [objects.a_share_device(f"ts-{index}") for index in range(3)]
    held = snapshots.holding("x", "node-a", objects.a_share("ts-1", memory="10Gi"))
    view = snapshots.view(objects.a_slice("node-a", shares), taken=[held])
    assert kinds(view) == [0, 1, 0]


def test_parts_are_alike_at_the_same_place_of_gpus_that_are_alike() -> None:
    view = two_gpus(("gpu-0", "1"), ("gpu-0", "1"), ("gpu-1", "1"), ("gpu-1", "1"))
    assert kinds(view) == [0, 1, 0, 1]


def test_parts_of_gpus_of_which_unlike_amounts_are_left_are_not_alike() -> None:
    view = two_gpus(
        ("gpu-0", "1"), ("gpu-0", "1"), ("gpu-1", "1"), ("gpu-1", "1"), taken=("part-3",)
    )
    assert kinds(view)[:3] == [0, 1, 2]


def test_parts_of_unlike_size_make_gpus_unlike() -> None:
    assert kinds(two_gpus(("gpu-0", "1"), ("gpu-1", "2"))) == [0, 1]


def test_a_part_that_is_taken_sets_its_whole_gpu_apart() -> None:
    view = two_gpus(("gpu-0", "1"), ("gpu-0", "1"), ("gpu-1", "1"), ("gpu-1", "1"))
    assert kinds(view, take=0) == [None, None, 0, 1]


def test_the_granted_amount_splits_an_equivalence_class() -> None:
    big, small = objects.a_share_device("ts-0"), objects.a_share_device("ts-1")
    big["capacity"]["memory"]["requestPolicy"]["default"] = "16Gi"
    assert kinds(snapshots.view(objects.a_slice("node-a", [big, small]))) == [0, 1]

from driver import reasons
from driver.resources.dra import claims
from driver.scheduling.allocator import search
from driver.scheduling.allocator.capacity import shortfall
from driver.scheduling.snapshot import snapshot
from tests.support import snapshots
from tests.support.allocation import problem, solved, unsolved
from tests.support.builders import device_layouts, objects

Reason = reasons.Reason
MATCH = objects.matching(device_layouts.NUMA)


def of(
    view: snapshot.Snapshot, *results: claims.Claim
) -> tuple[int, int, dict[reasons.Reason, int]]:
    fits, expected, counted = shortfall.count_shortfall(problem(view, *results))
    return fits, expected, dict(counted)


def test_devices_that_are_there_and_those_that_lack_are_counted() -> None:
    claim = objects.claim("c", objects.a_request(count=3))
    assert of(device_layouts.looking({}, {}, taken=("gpu-0",)), claim) == (
        1,
        3,
        {Reason.DEVICE_TAKEN: 1},
    )


def test_a_device_counts_for_one_request() -> None:
    claim = objects.claim("c", objects.a_request("a"), objects.a_request("b"))
    assert of(device_layouts.looking({}), claim) == (1, 2, {})


def test_devices_that_disagree_with_the_first_are_counted_by_the_constraint() -> None:
    claim = objects.claim("c", objects.a_request(count=5), constraints=[MATCH])
    assert of(device_layouts.two_numa_nodes(), claim) == (4, 5, {Reason.CONSTRAINT_UNMET: 4})


def test_devices_without_their_counters_are_counted_by_them() -> None:
    claim = objects.claim("c", device_layouts.of_profile("a", 2, "3g"))
    assert of(device_layouts.cut(1, "gpu-0-1g-0"), claim) == (
        1,
        2,
        {Reason.COUNTERS_TAKEN: 1, Reason.SELECTOR_MISMATCH: 8},
    )


def test_the_closest_alternative_is_reported() -> None:
    ways = [objects.a_way("nope", 4, "false"), objects.a_way("four", 4), objects.a_way("three", 3)]
    claim = objects.claim("c", objects.first_available("gpu", *ways))
    assert of(device_layouts.looking({}, {}), claim) == (2, 4, {})


def test_a_taken_device_reduces_the_fit_of_a_request_for_all() -> None:
    claim = objects.claim("c", objects.a_request(allocationMode="All"))
    assert of(device_layouts.looking({}, {}, {}, taken=("gpu-1",)), claim) == (
        2,
        3,
        {Reason.DEVICE_TAKEN: 1},
    )


def test_a_search_that_gave_up_leaves_nothing_behind_in_the_count() -> None:
    """It may end with devices in hand that would not be taken first."""
    kinds = [[1, 2], [1, 2], [2, 3], [2, 3], [1, 3], [1, 3], *[[4]] * 5]
    view = device_layouts.looking(*({"links": kind} for kind in kinds))
    parts = [objects.a_request("a", 2), objects.a_request("b", 2), objects.a_request("c")]
    claim = objects.claim("c", *parts, constraints=[objects.matching(device_layouts.LINKS)])
    whole = of(view, claim)
    for budget in range(solved(search.solve(problem(view, claim))).steps):
        request = problem(view, claim)
        assert unsolved(search.solve(request, budget)).budget_exceeded
        fits, expected, counted = shortfall.count_shortfall(request)
        assert (fits, expected, dict(counted)) == whole


def test_a_failing_selector_is_counted_and_fits_nothing() -> None:
    text = f'device.attributes["{snapshots.DRIVER}"].nope == 0'
    claim = objects.claim("c", objects.a_request("gpu", 2, text))
    assert of(device_layouts.looking({}), claim) == (0, 2, {Reason.SELECTOR_FAILED: 1})

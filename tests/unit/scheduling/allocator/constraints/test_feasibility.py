from driver.resources.dra import claims
from driver.scheduling.allocator import search
from driver.scheduling.allocator.constraints import counters, feasibility
from driver.scheduling.snapshot import snapshot
from tests.support import snapshots
from tests.support.allocation import empty_tally, problem
from tests.support.builders import objects

NUMA = f"{snapshots.DRIVER}/numa"
ZERO = f'device.attributes["{snapshots.DRIVER}"].numa == 0'
FAILING = f'device.attributes["{snapshots.DRIVER}"].nope == 0'


def numa(*values: int, node: str = "node-a") -> snapshot.Snapshot:
    """A node of GPUs by their NUMA node."""
    look = [
        objects.with_values(objects.a_device(f"gpu-{index}"), numa=value)
        for index, value in enumerate(values)
    ]
    return snapshots.view(objects.a_slice(node, look))


def demands(source: search.Problem) -> list[feasibility.Demand]:
    return [
        feasibility.Demand(claim, tuple(feasibility.Option(way, way.count) for way in ways))
        for claim, ways in zip(source.claim_indexes, source.candidates, strict=True)
    ]


def prospects_of(
    source: search.Problem, taken: counters.CounterTracker | None = None
) -> feasibility.FeasibilityBounds:
    return feasibility.FeasibilityBounds(
        source.devices, source.match_constraints, taken or empty_tally(source)
    )


def hopeful(view: snapshot.Snapshot, *results: claims.Claim) -> bool:
    source = problem(view, *results)
    return prospects_of(source).is_feasible(demands(source))


def asking(*requests: objects.Raw, constraints: object = None) -> claims.Claim:
    return objects.claim("c", *requests, constraints=constraints)


def test_a_request_for_more_than_there_is_is_hopeless() -> None:
    assert hopeful(numa(0, 0), asking(objects.a_request(count=2)))
    assert not hopeful(numa(0, 0), asking(objects.a_request(count=3)))


def test_requests_do_not_have_the_same_device() -> None:
    request = objects.a_request("one", 1, ZERO)
    assert not hopeful(numa(0, 1), asking(request, objects.a_request("two", 1, ZERO)))
    assert hopeful(numa(0, 1), asking(request, objects.a_request("two")))


def test_shares_of_one_device_go_to_several_requests() -> None:
    view = snapshots.view(objects.a_slice("node-a", [objects.a_share_device("ts")]))
    two = [objects.a_request(name, deviceClassName=snapshots.ANY) for name in ("one", "two")]
    assert hopeful(view, asking(*two))


def test_administrators_are_beside_others() -> None:
    plain = objects.claim("plain", objects.a_request())
    admin = objects.claim("admin", objects.a_request("admin", adminAccess=True))
    assert hopeful(numa(0), plain, admin)


def test_a_feasible_alternative_makes_the_request_feasible() -> None:
    several = objects.first_available("gpu", objects.a_way("a", 9), objects.a_way("b", 2))
    assert hopeful(numa(0, 0), asking(several))
    assert not hopeful(numa(0), asking(several))


def test_devices_that_must_agree_are_too_few_where_no_value_has_enough() -> None:
    aligned = [objects.matching(NUMA)]
    three = asking(objects.a_request(count=3), constraints=aligned)
    assert hopeful(numa(0, 0, 0, 1, 1), three)
    assert not hopeful(numa(0, 0, 1, 1), three)


def test_devices_that_must_differ_are_too_few_where_there_are_fewer_values() -> None:
    apart = [objects.differing(NUMA)]
    assert hopeful(numa(0, 1, 2), asking(objects.a_request(count=3), constraints=apart))
    assert not hopeful(numa(0, 1, 1), asking(objects.a_request(count=3), constraints=apart))


def test_requests_that_agree_need_a_value_that_all_of_them_can_have() -> None:
    name = f'device.attributes["{snapshots.DRIVER}"].numa == 1'
    two = [objects.a_request("a", 1, ZERO), objects.a_request("b", 1, name)]
    assert not hopeful(numa(0, 1), asking(*two, constraints=[objects.matching(NUMA)]))
    assert hopeful(numa(0, 1), asking(*two, constraints=[objects.matching(NUMA, "a")]))


def test_earlier_choices_narrow_the_bounds() -> None:
    source = problem(
        numa(0, 1, 1), asking(objects.a_request(count=3), constraints=[objects.matching(NUMA)])
    )
    taken = empty_tally(source)
    offer = source.candidates[0][0]
    assert taken.try_allocate(0, offer, 0)
    source.match_constraints[0].add(0)
    rest = feasibility.Demand(0, (feasibility.Option(offer, 1, 1),))
    assert not prospects_of(source, taken).is_feasible([rest])


def test_a_failing_selector_is_left_to_the_search() -> None:
    assert hopeful(numa(0), asking(objects.a_request("gpu", 5, FAILING)))


def test_it_may_hope_in_vain() -> None:
    """Two constraints are looked at one by one."""
    look = [
        objects.with_values(objects.a_device(f"gpu-{index}"), numa=numa, row=row)
        for index, (numa, row) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)])
    ]
    view = snapshots.view(objects.a_slice("node-a", look))
    both = [objects.matching(NUMA), objects.matching(f"{snapshots.DRIVER}/row")]
    claim = asking(objects.a_request(count=2), constraints=both)
    assert hopeful(view, claim)
    assert isinstance(search.solve(problem(view, claim)), search.Unsolved)

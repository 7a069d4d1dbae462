from itertools import pairwise

import pytest

from driver.resources.dra import claims
from driver.scheduling.allocator import search
from driver.scheduling.snapshot import snapshot
from tests.support import snapshots
from tests.support.allocation import problem, solved, unsolved
from tests.support.builders import device_layouts, objects

MATCH, DIFFER = objects.matching(device_layouts.NUMA), objects.differing(device_layouts.NUMA)
FAILING = f'device.attributes["{snapshots.DRIVER}"].nope == 0'


def asking(*requests: objects.Raw, constraints: object = None) -> claims.Claim:
    return objects.claim("c", *requests, constraints=constraints)


def solve(
    view: snapshot.Snapshot, *results: claims.Claim, budget: int | None = None
) -> search.Solved | search.Unsolved:
    return search.solve(problem(view, *results), budget)


def chosen(view: snapshot.Snapshot, *results: claims.Claim) -> list[tuple[str, str]]:
    """Each device with its request, in their order."""
    source = problem(view, *results)
    return [
        (choice.candidates.subrequest.name, source.devices[choice.index].id.device)
        for choice in solved(search.solve(source)).choices
    ]


def test_the_first_devices_are_taken_in_the_order_of_requests() -> None:
    claim = asking(objects.a_request("b"), objects.a_request("a", 2))
    assert chosen(device_layouts.two_numa_nodes(), claim) == [
        ("b", "gpu-0"),
        ("a", "gpu-1"),
        ("a", "gpu-2"),
    ]


def test_the_first_alternative_that_can_be_had_is_taken() -> None:
    ways = [objects.a_way("nine", 9), objects.a_way("two", 2), objects.a_way("one")]
    claim = asking(objects.first_available("gpu", *ways))
    assert chosen(device_layouts.two_numa_nodes(), claim) == [
        ("gpu/two", "gpu-0"),
        ("gpu/two", "gpu-1"),
    ]


def test_an_earlier_request_takes_a_later_alternative_where_the_next_one_needs_it() -> None:
    several = objects.first_available("gpu", objects.a_way("seven", 7), objects.a_way("six", 6))
    claim = asking(several, objects.a_request("rest", 2))
    assert {name for name, _ in chosen(device_layouts.two_numa_nodes(), claim)} == {
        "gpu/six",
        "rest",
    }


def test_devices_of_one_claim_agree_and_those_of_another_need_not() -> None:
    view = device_layouts.two_numa_nodes("gpu-0", "gpu-1")
    four = asking(objects.a_request(count=4), constraints=[MATCH])
    claim = objects.claim("d", objects.a_request())
    assert [device for _, device in chosen(view, four, claim)] == [
        "gpu-4",
        "gpu-5",
        "gpu-6",
        "gpu-7",
        "gpu-2",
    ]


def test_a_constraint_is_on_the_requests_that_it_names_only() -> None:
    claim = asking(
        objects.a_request("a", 3),
        objects.a_request("b", 2),
        constraints=[objects.matching(device_layouts.NUMA, "b")],
    )
    assert [
        device for name, device in chosen(device_layouts.two_numa_nodes(), claim) if name == "b"
    ] == [
        "gpu-4",
        "gpu-5",
    ]


def test_lists_agree_in_an_element_that_all_have() -> None:
    links = [[1, 2], [2, 3], [1, 3], [2]]
    view = device_layouts.looking(*({"links": link} for link in links))
    claim = asking(objects.a_request(count=3), constraints=[objects.matching(device_layouts.LINKS)])
    assert [device for _, device in chosen(view, claim)] == ["gpu-0", "gpu-1", "gpu-3"]
    apart = asking(
        objects.a_request(count=2), constraints=[objects.differing(device_layouts.LINKS)]
    )
    assert [device for _, device in chosen(view, apart)] == ["gpu-2", "gpu-3"]


def test_all_has_every_one_and_leaves_none_to_others() -> None:
    everything = objects.a_request("all", allocationMode="All")
    view = device_layouts.two_numa_nodes()
    assert len(chosen(view, asking(everything))) == 8
    assert not unsolved(solve(view, asking(everything, objects.a_request("more")))).error


def test_all_of_what_disagrees_is_an_error_and_not_a_plain_no() -> None:
    claim = asking(objects.a_request("all", allocationMode="All"), constraints=[MATCH])
    result = unsolved(solve(device_layouts.two_numa_nodes(), claim))
    assert result.error == "a constraint keeps gpu-4 from All, which needs it"


def test_all_of_more_than_a_claim_may_have_is_not_to_be_had() -> None:
    claim = asking(objects.a_request("all", allocationMode="All"))
    assert chosen(device_layouts.looking(*[{}] * 32), claim)
    result = unsolved(solve(device_layouts.looking(*[{}] * 33), claim))
    assert (result.error, result.steps) == ("", 0)


def test_a_failing_selector_ends_the_search_only_where_it_is_met() -> None:
    claim = asking(
        objects.a_request("gpu", 1, f'device.attributes["{snapshots.DRIVER}"].rare == 1')
    )
    first, second = device_layouts.looking({"rare": 1}, {}), device_layouts.looking({}, {"rare": 1})
    assert chosen(first, claim) == [("gpu", "gpu-0")]
    assert unsolved(solve(second, claim)).error.startswith("gpu-0: ")


def test_an_alternative_that_is_had_spares_the_failure_of_the_next() -> None:
    ways = [objects.a_way("fine"), objects.a_way("fails", 1, FAILING)]
    assert chosen(device_layouts.looking({}), asking(objects.first_available("gpu", *ways)))
    other = asking(objects.first_available("gpu", *reversed(ways)))
    assert unsolved(solve(device_layouts.looking({}), other)).error.startswith("gpu-0: ")


def test_a_claim_may_have_two_shares_of_one_device_by_two_requests() -> None:
    view = snapshots.view(objects.a_slice("node-a", [objects.a_share_device("ts")]))
    big: objects.Raw = {
        "deviceClassName": snapshots.ANY,
        "capacity": {"requests": {"memory": "40Gi"}},
    }
    claim = asking(objects.a_request("a", **big), objects.a_request("b", **big))
    assert chosen(view, claim) == [("a", "ts"), ("b", "ts")]
    assert not unsolved(solve(view, asking(objects.a_request("a", 2, **big)))).error


def test_a_claim_without_requests_needs_nothing() -> None:
    nothing = claims.parse({"metadata": {"name": "c"}, "spec": {"devices": {}}})
    assert chosen(device_layouts.looking({}), nothing) == []


# Steps: devices tried. A plain no is cheap where it is plain, and never hides behind a budget.


@pytest.mark.parametrize("count", [1, 4, 8])
def test_plain_requests_take_a_step_a_device(count: int) -> None:
    result = solved(solve(device_layouts.two_numa_nodes(), asking(objects.a_request(count=count))))
    assert result.steps == count


def test_eight_aligned_of_seven_free_take_no_step() -> None:
    claim = asking(
        objects.a_request(count=8), constraints=[objects.matching(f"{snapshots.DRIVER}/type")]
    )
    assert unsolved(solve(device_layouts.two_numa_nodes("gpu-3"), claim)).steps == 0


def test_five_aligned_of_two_numa_nodes_of_four_take_no_step() -> None:
    claim = asking(objects.a_request(count=5), constraints=[MATCH])
    assert unsolved(solve(device_layouts.two_numa_nodes(), claim)).steps == 0


def test_four_aligned_where_the_first_numa_node_has_three_take_one_step_more() -> None:
    claim = asking(objects.a_request(count=4), constraints=[MATCH])
    assert solved(solve(device_layouts.two_numa_nodes("gpu-3"), claim)).steps == 5


def test_more_apart_than_there_are_values_take_no_step() -> None:
    claim = asking(objects.a_request(count=3), constraints=[DIFFER])
    assert unsolved(solve(device_layouts.two_numa_nodes(), claim)).steps == 0


def test_one_of_each_equivalence_class_is_tried() -> None:
    """Each constraint alone could be met, both together cannot."""
    grid = [{"numa": index // 8, "row": index // 4 % 2} for index in range(16)]
    both = [MATCH, objects.matching(device_layouts.ROW)]
    claim = asking(objects.a_request(count=5), constraints=both)
    assert unsolved(solve(device_layouts.looking(*grid), claim)).steps == 4
    two = asking(objects.a_request("a", 3), objects.a_request("b", 2), constraints=both)
    assert unsolved(solve(device_layouts.looking(*grid), two)).steps == 4


@pytest.mark.parametrize(("alike", "steps"), [(2, 21), (4, 39), (8, 75), (10, 93)])
def test_devices_that_are_alike_cost_no_more_than_their_number(alike: int, steps: int) -> None:
    """Try three of any two kinds: one is common, of three none: nine steps a device."""
    kinds = [[1, 2], [2, 3], [1, 3]]
    view = device_layouts.looking(*({"links": kind} for kind in kinds for _ in range(alike)))
    parts = [objects.a_request("a", alike), objects.a_request("b", alike), objects.a_request("c")]
    claim = asking(*parts, constraints=[objects.matching(device_layouts.LINKS)])
    assert unsolved(solve(view, claim)).steps == steps


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_a_part_too_many_is_found_out_by_counting_what_parts_draw(gpus: int) -> None:
    small, big = (
        device_layouts.of_profile("a", 1, "1g"),
        device_layouts.of_profile("b", 2 * gpus, "3g"),
    )
    assert unsolved(solve(device_layouts.cut(gpus), asking(small, big))).steps == 0


@pytest.mark.parametrize(("small", "big"), [(20, 12), (6, 15), (9, 14)])
def test_small_parts_before_big_ones_that_do_not_fit_beside_them_cost_no_search(
    small: int, big: int
) -> None:
    first, then = (
        device_layouts.of_profile("a", small, "1g"),
        device_layouts.of_profile("b", big, "3g"),
    )
    assert unsolved(solve(device_layouts.cut(8), asking(first, then))).steps == 0


def test_parts_that_fit_take_a_step_each_and_a_few() -> None:
    claim = asking(
        device_layouts.of_profile("a", 20, "1g"), device_layouts.of_profile("b", 10, "3g")
    )
    assert solved(solve(device_layouts.cut(8), claim)).steps == 36


def test_alternatives_that_all_but_fit_take_few_steps() -> None:
    """Two of each request would be six on a NUMA node of four."""
    ways = [objects.a_way(f"w{count}", count) for count in (4, 3, 2)]
    requests = [objects.first_available(name, *ways) for name in ("a", "b", "c")]
    result = unsolved(
        solve(device_layouts.two_numa_nodes(), asking(*requests, constraints=[MATCH]))
    )
    assert result.steps == 24


def hard() -> search.Problem:
    """A question whose plain no takes 93 steps."""
    kinds = [[1, 2], [2, 3], [1, 3]]
    view = device_layouts.looking(*({"links": kind} for kind in kinds for _ in range(10)))
    parts = [objects.a_request("a", 10), objects.a_request("b", 10), objects.a_request("c")]
    return problem(view, asking(*parts, constraints=[objects.matching(device_layouts.LINKS)]))


def test_a_search_that_ends_at_its_budget_gave_up_and_did_not_say_no() -> None:
    whole = unsolved(search.solve(hard()))
    assert (whole.steps, whole.budget_exceeded) == (93, False)
    for budget in range(0, 93, 10):
        cut_short = unsolved(search.solve(hard(), budget))
        assert (cut_short.budget_exceeded, cut_short.error) == (True, "")
    assert search.solve(hard(), 93) == whole


def test_a_budget_changes_no_solution_that_it_reaches() -> None:
    view = device_layouts.cut(2)
    small, big = device_layouts.of_profile("a", 4, "1g"), device_layouts.of_profile("b", 3, "3g")
    whole = solved(solve(view, asking(small, big)))
    answers = [solve(view, asking(small, big), budget=budget) for budget in range(20)]
    assert all(unsolved(answer).budget_exceeded for answer in answers[: whole.steps])
    assert {entry == two for entry, two in pairwise(answers[whole.steps :])} == {True}
    assert [choice.index for choice in solved(answers[-1]).choices] == [
        choice.index for choice in whole.choices
    ]

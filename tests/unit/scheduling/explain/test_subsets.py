from driver.scheduling.explain import subsets


def cost(numbers: subsets.Members) -> subsets.Rank:
    return sum(numbers), sorted(numbers)


def letters(*numbers: int) -> list[subsets.Members]:
    return [frozenset([number]) for number in numbers]


def test_every_union_comes_once_the_cheapest_first() -> None:
    numbers = [
        sorted(cheapest_sets)
        for cheapest_sets in subsets.CheapestSets(subsets.Generators(letters(1, 2, 4)), cost)
    ]
    assert numbers == [[], [1], [2], [1, 2], [4], [1, 4], [2, 4], [1, 2, 4]]


def test_letters_may_have_members_in_common() -> None:
    overlapping = [frozenset([1, 2]), frozenset([2, 3])]
    numbers = [
        sorted(cheapest_sets)
        for cheapest_sets in subsets.CheapestSets(subsets.Generators(overlapping), cost)
    ]
    assert numbers == [[], [1, 2], [2, 3], [1, 2, 3]]


def test_supersets_of_a_solution_are_skipped() -> None:
    numbers = []
    looked_at = subsets.CheapestSets(subsets.Generators(letters(1, 2, 4)), cost)
    for counts in looked_at:
        numbers.append(sorted(counts))
        if counts == {2}:
            looked_at.exclude_supersets(counts)
    assert numbers == [[], [1], [2], [4], [1, 4]]


def test_more_is_added_only_where_there_is_room_for_it() -> None:
    generators = subsets.Generators(letters(1), letters(2, 4), lambda numbers: numbers == {1})
    assert [sorted(cheapest_sets) for cheapest_sets in subsets.CheapestSets(generators, cost)] == [
        [],
        [1],
        [1, 2],
        [1, 4],
    ]


def test_a_union_is_not_lost_where_more_is_added_before_the_rest() -> None:
    prices = {1: 3, 2: 1, 3: 2}
    generators = subsets.Generators(letters(1, 2, 3), letters(1), lambda numbers: numbers == {2})
    unions = subsets.CheapestSets(
        generators, lambda numbers: (sum(prices[number] for number in numbers), sorted(numbers))
    )
    assert [sorted(union) for union in unions] == [
        [],
        [2],
        [3],
        [1],
        [2, 3],
        [1, 2],
        [1, 3],
        [1, 2, 3],
    ]

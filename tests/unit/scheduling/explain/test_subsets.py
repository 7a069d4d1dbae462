from driver.scheduling.explain import subsets


def cost(found: subsets.Members) -> subsets.Rank:
    return sum(found), sorted(found)


def letters(*found: int) -> list[subsets.Members]:
    return [frozenset([one]) for one in found]


def test_every_union_comes_once_the_cheapest_first() -> None:
    found = [
        sorted(one) for one in subsets.CheapestSets(subsets.Generators(letters(1, 2, 4)), cost)
    ]
    assert found == [[], [1], [2], [1, 2], [4], [1, 4], [2, 4], [1, 2, 4]]


def test_letters_may_have_members_in_common() -> None:
    overlapping = [frozenset([1, 2]), frozenset([2, 3])]
    found = [sorted(one) for one in subsets.CheapestSets(subsets.Generators(overlapping), cost)]
    assert found == [[], [1, 2], [2, 3], [1, 2, 3]]


def test_what_holds_a_set_that_is_done_is_left_out() -> None:
    told = []
    looked_at = subsets.CheapestSets(subsets.Generators(letters(1, 2, 4)), cost)
    for one in looked_at:
        told.append(sorted(one))
        if one == {2}:
            looked_at.exclude_supersets(one)
    assert told == [[], [1], [2], [4], [1, 4]]


def test_more_is_added_only_where_there_is_room_for_it() -> None:
    found = subsets.Generators(letters(1), letters(2, 4), lambda one: one == {1})
    assert [sorted(one) for one in subsets.CheapestSets(found, cost)] == [[], [1], [1, 2], [1, 4]]

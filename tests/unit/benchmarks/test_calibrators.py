"""Tests of the fixed work."""

from benchmarks import calibrators


def test_the_walk_of_memory_comes_to_every_place_once() -> None:
    places = calibrators.places(1_000)
    index, visited = 0, []
    for _ in places:
        index = places[index]
        visited.append(index)
    assert sorted(visited) == list(range(1_000))

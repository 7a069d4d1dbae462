from driver.scheduling.allocator.results import result_cache
from tests import worlds

VIEW = worlds.fleet({"node-a": 2})


def test_a_shape_finds_again_what_nodes_told_to_it_as_one_judge_ranks() -> None:
    found = result_cache.Recall(VIEW)
    assert found.of("shape", "pack") is found.of("shape", "pack")
    assert found.of("shape", "pack") is not found.of("shape", "spread")


def test_of_more_shapes_than_are_kept_those_asked_last_stay() -> None:
    found = result_cache.Recall(VIEW)
    first, second = found.of(0), found.of(1)
    for number in range(2, 256):
        found.of(number)
    assert found.of(0) is first
    found.of(256)
    assert found.of(0) is first
    assert found.of(1) is not second

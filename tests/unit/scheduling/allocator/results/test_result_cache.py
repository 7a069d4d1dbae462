from driver.scheduling.allocator.results import result_cache
from tests.support import snapshots

VIEW = snapshots.fleet({"node-a": 2})


def test_a_shape_finds_again_what_nodes_told_to_it_as_one_judge_ranks() -> None:
    found = result_cache.ResultCache(VIEW)
    assert found.get("shape", "pack") is found.get("shape", "pack")
    assert found.get("shape", "pack") is not found.get("shape", "spread")


def test_of_more_shapes_than_are_kept_those_asked_last_stay() -> None:
    found = result_cache.ResultCache(VIEW)
    first, second = found.get(0), found.get(1)
    for number in range(2, 256):
        found.get(number)
    assert found.get(0) is first
    found.get(256)
    assert found.get(0) is first
    assert found.get(1) is not second

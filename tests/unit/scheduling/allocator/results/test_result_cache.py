from driver.scheduling.allocator.results import result_cache
from tests.support import snapshots

VIEW = snapshots.fleet({"node-a": 2})


def test_a_shape_finds_again_what_nodes_told_to_it_as_one_judge_ranks() -> None:
    cache = result_cache.ResultCache(VIEW)
    assert cache.get("shape", "pack") is cache.get("shape", "pack")
    assert cache.get("shape", "pack") is not cache.get("shape", "spread")


def test_the_most_recently_used_signatures_stay_cached() -> None:
    cache = result_cache.ResultCache(VIEW)
    first, second = cache.get(0), cache.get(1)
    for number in range(2, 256):
        cache.get(number)
    assert cache.get(0) is first
    cache.get(256)
    assert cache.get(0) is first
    assert cache.get(1) is not second

from driver import ids
from driver.scheduling.allocator.results import result_cache
from tests.support import snapshots
from tests.support.builders import objects

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


def test_nodes_that_come_later_have_as_many_cached_results() -> None:
    view = snapshots.view()
    cache = result_cache.ResultCache(view)
    shapes = [cache.get(number) for number in range(2)]
    assert {results.most for results in shapes} == {64}
    for number in range(100):
        name = f"node-{number}"
        view.set_node(ids.NodeName(name), objects.node(name))
        view.set_slice(name, objects.a_parsed_slice(name, 8))
    cache.resize(view)
    assert [cache.get(number) for number in range(2)] == shapes
    assert {results.most for results in (*shapes, cache.get(2))} == {400}

from driver import ids
from driver.resources.core import pods
from driver.scheduling.snapshot import placed_pods, pods_overlay
from tests.support.scenarios import affinity

A, B = ids.NodeName("a"), ids.NodeName("b")


def counts(placed: placed_pods.PlacedPods) -> dict[str, dict[str, int]]:
    """Return the pods of each node by app."""
    return {
        kind.labels.get("app", ""): {str(name): number for name, number in on.items()}
        for kind, on in placed.kind_counts()
    }


def put(placed: placed_pods.PlacedPods, pod: pods.Pod, node: ids.NodeName | None) -> list[str]:
    return [str(name) for name in placed.set_pod(pod.key, pod, node)]


def test_pods_of_one_kind_are_counted_together() -> None:
    placed = placed_pods.PlacedPods({})
    for name, node in (("x", A), ("y", A), ("z", B)):
        put(placed, affinity.a_pod(name, app="web"), node)
    assert counts(placed) == {"web": {"a": 2, "b": 1}}
    put(placed, affinity.a_pod("x", app="web"), B)
    assert counts(placed) == {"web": {"a": 1, "b": 2}}


def test_a_pod_that_goes_leaves_nothing() -> None:
    placed = placed_pods.PlacedPods({})
    for seen in (True, False):
        pod = affinity.a_pod("x", app="web", affinity=affinity.apart(affinity.term("web")))
        for item in (pod, affinity.a_pod("plain", app="web")):
            put(placed, item, A)
            assert not seen or counts(placed)
            placed.set_pod(item.key, None, None)
        assert counts(placed) == {}
        assert not placed.has_anti_affinity
        assert not any(placed._pending.values())


def test_every_change_has_another_mark() -> None:
    placed = placed_pods.PlacedPods({})
    marks = [placed.revision]
    for node in (A, B, None):
        put(placed, affinity.a_pod("x", app="web"), node)
        marks.append(placed.revision)
        counts(placed)
        assert placed.revision == marks[-1]
    assert len({*marks}) == len(marks)


def test_the_cache_is_rebuilt_after_any_change() -> None:
    placed = placed_pods.PlacedPods({})
    numbers = iter(range(9))
    assert [placed.cached("key", lambda: next(numbers)) for _ in range(2)] == [0, 0]
    put(placed, affinity.a_pod("x"), A)
    assert placed.cached("key", lambda: next(numbers)) == 1


def test_a_layer_counts_more_pods_and_fewer() -> None:
    placed = placed_pods.PlacedPods({})
    pod = affinity.a_pod("x", app="web")
    put(placed, pod, A)
    without = pods_overlay.PopulationOverlay(placed, [(pod, A)])
    assert sum(on.get(A, 0) for _, on in without.kind_counts()) == 0
    more = pods_overlay.PopulationOverlay(placed)
    mark = more.revision
    more.push(affinity.a_pod("y", app="web"), A)
    assert sum(on.get(A, 0) for _, on in more.kind_counts()) == 2
    more.pop()
    assert more.revision == mark

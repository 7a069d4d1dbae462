from driver import ids
from driver.resources.core import pods
from driver.scheduling.snapshot import placed_pods, pods_overlay
from tests import clusters

A, B = ids.NodeName("a"), ids.NodeName("b")


def counts(placed: placed_pods.Placed) -> dict[str, dict[str, int]]:
    """By app, the pods of each node."""
    return {
        kind.labels.get("app", ""): {str(name): number for name, number in on.items()}
        for kind, on in placed.members()
    }


def put(placed: placed_pods.Placed, pod: pods.Pod, node: ids.NodeName | None) -> list[str]:
    return [str(name) for name in placed.put(pod.key, pod, node)]


def test_pods_of_one_kind_are_counted_together() -> None:
    placed = placed_pods.Placed({})
    for name, node in (("x", A), ("y", A), ("z", B)):
        put(placed, clusters.a_pod(name, app="web"), node)
    assert counts(placed) == {"web": {"a": 2, "b": 1}}
    put(placed, clusters.a_pod("x", app="web"), B)
    assert counts(placed) == {"web": {"a": 1, "b": 2}}


def test_a_pod_that_goes_leaves_nothing() -> None:
    placed = placed_pods.Placed({})
    for seen in (True, False):
        pod = clusters.a_pod("x", app="web", affinity=clusters.apart(clusters.term("web")))
        for one in (pod, clusters.a_pod("plain", app="web")):
            put(placed, one, A)
            assert not seen or counts(placed)
            placed.put(one.key, None, None)
        assert counts(placed) == {}
        assert not placed.objects
        assert not any(placed._pending.values())


def test_every_change_has_another_mark() -> None:
    placed = placed_pods.Placed({})
    marks = [placed.mark]
    for node in (A, B, None):
        put(placed, clusters.a_pod("x", app="web"), node)
        marks.append(placed.mark)
        counts(placed)
        assert placed.mark == marks[-1]
    assert len({*marks}) == len(marks)


def test_what_is_remembered_is_made_anew_once_anything_changed() -> None:
    placed = placed_pods.Placed({})
    made = iter(range(9))
    assert [placed.remembered("key", lambda: next(made)) for _ in range(2)] == [0, 0]
    put(placed, clusters.a_pod("x"), A)
    assert placed.remembered("key", lambda: next(made)) == 1


def test_a_layer_counts_more_pods_and_fewer() -> None:
    placed = placed_pods.Placed({})
    pod = clusters.a_pod("x", app="web")
    put(placed, pod, A)
    without = pods_overlay.Layered(placed, [(pod, A)])
    assert sum(on.get(A, 0) for _, on in without.members()) == 0
    more = pods_overlay.Layered(placed)
    mark = more.mark
    more.push(clusters.a_pod("y", app="web"), A)
    assert sum(on.get(A, 0) for _, on in more.members()) == 2
    more.pop()
    assert more.mark == mark

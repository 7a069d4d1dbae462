from dataclasses import replace

from driver import ids, names
from driver.resources import pod_groups
from driver.resources.dra import claims
from driver.scheduling.explain import holders
from driver.scheduling.preemption import victims
from tests.support.builders import objects
from tests.support.scenarios import preemptions

NOW = preemptions.NOW.timestamp()


def test_a_pod_alone_is_a_unit() -> None:
    scene = preemptions.of_sizes(a=2)
    scene.work("p", "node-a", "gpu-0")
    scene.work("q", "node-a", "gpu-1")
    assert sorted(scene.book.all_victims(scene.view)) == [
        ("pod", "default/p"),
        ("pod", "default/q"),
    ]


def test_a_gang_is_one_unit_over_all_its_nodes() -> None:
    scene = preemptions.of_sizes(a=1, b=1)
    scene.work("p", "node-a", "gpu-0", gang="g", priority=5)
    scene.work("q", "node-b", "gpu-0", gang="g", priority=7)
    (victim,) = scene.book.all_victims(scene.view).values()
    assert [pod.key for pod in victim.pods] == ["default/p", "default/q"]
    assert victim.priority == 7
    for name in ("node-a", "node-b"):
        assert scene.book.node_victims(scene.view, scene.view.nodes[ids.NodeName(name)]) == (
            victim,
        )


def test_a_gang_of_another_namespace_is_another() -> None:
    scene = preemptions.of_sizes(a=1)
    pod = scene.work("p", "node-a", "gpu-0", gang="g")
    scene.put(replace(pod, namespace="other", uid=ids.PodUid("u"), claims=()))
    assert len(scene.book.all_victims(scene.view)) == 2


def test_a_pod_without_devices_is_no_victim() -> None:
    scene = preemptions.of_sizes(a=1)
    scene.put(objects.pod("waiting"))
    scene.work("over", "node-a", "gpu-0", phase="Succeeded")
    assert not scene.book.all_victims(scene.view)


def test_lost_is_gpus_times_seconds_since_each_pod_started() -> None:
    scene = preemptions.of_sizes(a=3)
    scene.work("p", "node-a", "gpu-0", "gpu-1", ran=100, gang="g")
    scene.work("q", "node-a", "gpu-2", ran=10, gang="g")
    (victim,) = scene.book.all_victims(scene.view).values()
    assert victim.lost_at(NOW) == 1000 * (2 * 100 + 1 * 10)


def test_an_unstarted_pod_counts_from_its_creation() -> None:
    scene = preemptions.of_sizes(a=1)
    scene.work("p", "node-a", "gpu-0", started="", created="2026-11-22T11:59:00Z")
    assert scene.judged("p").lost_s == 60


def test_a_time_that_cannot_be_read_loses_nothing() -> None:
    scene = preemptions.of_sizes(a=1)
    scene.work("p", "node-a", "gpu-0", started="soon", created="")
    assert scene.judged("p").lost_s == 0


def test_a_share_counts_as_the_part_that_it_takes() -> None:
    scene = preemptions.Scene()
    scene.node("node-a", objects.a_slice("node-a", [objects.a_share_device("ts-0")]))
    scene.work("p", "node-a", objects.a_share("ts-0", memory="20Gi"), ran=100)
    assert scene.judged("p").lost_s == 25


def test_a_claim_of_two_pods_of_a_gang_counts_once_since_the_first() -> None:
    scene = preemptions.of_sizes(a=1)
    both = [
        scene.put(
            replace(
                objects.pod(name, "one", nodeName="node-a"),
                gang="g",
                owner=preemptions.OWNER,
                started=started,
            )
        )
        for name, started in (("p", "2026-11-22T11:58:00Z"), ("q", "2026-11-22T11:59:00Z"))
    ]
    scene.hold("one", "node-a", "gpu-0", by=both)
    assert scene.judged("g").lost_s == 120


def test_a_book_kept_by_changes_says_what_a_new_one_says() -> None:
    scene = preemptions.of_sizes(a=3, b=1)
    first = scene.work("p", "node-a", "gpu-0", gang="g")
    second = scene.work("q", "node-a", "gpu-1")
    book = scene.book
    assert len(book.all_victims(scene.view)) == 2
    book.set_pod(first.key, scene.put(replace(first, gang="", priority=3)))
    assert book.all_victims(scene.view) == scene.book.all_victims(scene.view)
    book.set_pod(second.key, scene.put(replace(second, gang="g")))
    assert book.all_victims(scene.view) == scene.book.all_victims(scene.view)
    claim = scene.held.pop(ids.Key("default/q-gpu"))
    book.set_claim(claim.key, None)
    scene.view.set_claim(claim.key, None)
    assert book.all_victims(scene.view) == scene.book.all_victims(scene.view)
    del scene.known[first.key]
    book.set_pod(first.key, None)
    scene.view.set_pod(first.key, None)
    assert book.all_victims(scene.view) == scene.book.all_victims(scene.view)
    third = scene.work("r", "node-b", "gpu-0")
    book.set_pod(third.key, third)
    for claim in scene.held.values():
        book.set_claim(claim.key, claim)
    assert book.all_victims(scene.view) == scene.book.all_victims(scene.view)


def test_a_pool_that_changed_is_measured_again() -> None:
    scene = preemptions.Scene()
    scene.node("node-a", objects.a_slice("node-a", [objects.a_share_device("ts-0")]))
    scene.work("p", "node-a", objects.a_share("ts-0", memory="20Gi"))
    book = scene.book
    (previous,) = book.all_victims(scene.view).values()
    whole = objects.a_slice("node-a", [objects.a_device("ts-0")], generation=2)
    scene.node("node-a", whole)
    (after,) = book.all_victims(scene.view).values()
    assert (previous.thousandths, after.thousandths) == (250, 1000)


def test_names_are_told_with_how_many_go() -> None:
    scene = preemptions.of_sizes(a=2)
    scene.work("p", "node-a", "gpu-0", gang="g")
    scene.work("q", "node-a", "gpu-1", gang="g")
    assert scene.judged("g").victim.description == "gang default/g (2 pods)"
    assert victims.VictimIndex().victim_key(objects.pod("x")) == ("pod", "default/x")


def test_pods_of_a_group_without_a_min_count_are_units_until_it_says_otherwise() -> None:
    scene = preemptions.of_sizes(a=2)
    for name, gpu in (("p", "gpu-0"), ("q", "gpu-1")):
        scene.put(replace(scene.work(name, "node-a", gpu, gang="g"), pod_group="g"))
    book, basic = scene.book, pod_groups.PodGroup("default", "g", 0)
    together = replace(basic, disrupted_together=True)
    for group, units in (
        (None, [("gang", "default/g")]),
        (basic, [("pod", "default/p"), ("pod", "default/q")]),
        (together, [("gang", "default/g")]),
        (basic, [("pod", "default/p"), ("pod", "default/q")]),
        (None, [("gang", "default/g")]),
    ):
        book.set_pod_group(basic.key, group)
        assert sorted(book.all_victims(scene.view)) == units


def test_a_claim_that_a_pod_group_shares_is_freed_by_no_eviction() -> None:
    scene = preemptions.of_sizes(a=1)
    scene.work("p", "node-a", "gpu-0")
    entry = claims.Consumer(names.SCHEDULING_GROUP, "podgroups", "g", "group-uid")
    for key, claim in [*scene.held.items()]:
        scene.held[key] = replace(claim, consumers=(*claim.consumers, entry))
    (victim,) = scene.book.all_victims(scene.view).values()
    assert holders.freed_claims(victim.pods) == frozenset()

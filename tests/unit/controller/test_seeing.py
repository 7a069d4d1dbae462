from driver import ids, names
from driver.controller import seeing
from driver.kube import events
from tests import objects
from tests.fakes import clock, deciding


def a_world() -> tuple[deciding.World, seeing.Seeing, seeing.Remembering]:
    world = deciding.World(2)
    told = seeing.Remembering(world.told, world.clock)
    seen = seeing.Seeing(names.DRIVER, world.stores, world.decider.explained, told, world.clock)
    return world, seen, told


def test_what_the_caches_hold_is_reported_with_the_deciders_answer() -> None:
    world, seen, _ = a_world()
    world.add(objects.a_claim("claim", objects.a_request("gpu", 9)), objects.a_pod())
    world.settle()
    pod = seen.reading().pod("default/pod")
    assert pod is not None
    assert pod.explanation is not None
    assert pod.explanation.refusals[0].wanted == 9


def test_a_look_is_kept_for_a_second() -> None:
    world, seen, _ = a_world()
    assert seen.reading().claims().total == 0
    world.add(objects.a_claim())
    assert seen.reading().claims().total == 0
    world.clock.advance(1.0)
    assert seen.reading().claims().total == 1


def test_what_was_told_is_remembered_the_newest_first() -> None:
    time = clock.FakeClock()
    told = deciding.Told()
    remembering = seeing.Remembering(told, time)
    for reason in ("Allocated", "NoFit"):
        about = events.ObjectRef("Pod", "v1", "default", "pod", "uid")
        remembering.event(about, reason, "words", warning=reason == "NoFit")
    assert [one.reason for one in remembering.moments()] == ["NoFit", "Allocated"]
    assert len(told.lines) == 2


def test_a_pod_that_was_never_decided_for_has_no_explanation() -> None:
    world, seen, _ = a_world()
    world.stores.pods.apply(objects.a_pod("stranger"))
    pod = seen.reading().pod(ids.Key("default/stranger"))
    assert pod is not None
    assert pod.explanation is None

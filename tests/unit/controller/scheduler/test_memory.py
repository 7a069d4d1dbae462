from driver import ids
from driver.controller.scheduler import memory
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explanation

KEY, UID = ids.Key("default/pod"), ids.PodUid("one")


def told() -> memory.Memory:
    """A pod was told why it waits."""
    found = memory.Memory()
    found.meet(KEY, UID)
    found.told[UID] = "No node fits"
    found.explained[UID] = explanation.Explanation(KEY, "", allocator_types.Unschedulable())
    return found


def test_why_a_pod_waits_is_kept_as_long_as_the_refusal_holds() -> None:
    found = told()
    found.hush(UID)
    assert (found.told, found.explained) == ({}, {})


def test_with_a_pod_goes_what_it_was_told() -> None:
    found = told()
    found.forget(KEY)
    assert (found.told, found.explained) == ({}, {})


def test_another_pod_of_the_name_was_told_nothing() -> None:
    found = told()
    found.meet(KEY, ids.PodUid("two"))
    assert (found.told, found.explained) == ({}, {})

from driver import ids
from driver.controller.scheduler import state
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explanation

KEY, UID = ids.Key("default/pod"), ids.PodUid("one")


def told() -> state.SchedulerState:
    """A pod was told why it waits."""
    found = state.SchedulerState()
    found.observe_uid(KEY, UID)
    found.messages[UID] = "No node fits"
    found.explanations[UID] = explanation.Explanation(KEY, "", allocator_types.Unschedulable())
    return found


def test_why_a_pod_waits_is_kept_as_long_as_the_refusal_holds() -> None:
    found = told()
    found.clear_messages(UID)
    assert (found.messages, found.explanations) == ({}, {})


def test_with_a_pod_goes_what_it_was_told() -> None:
    found = told()
    found.forget(KEY)
    assert (found.messages, found.explanations) == ({}, {})


def test_another_pod_of_the_name_was_told_nothing() -> None:
    found = told()
    found.observe_uid(KEY, ids.PodUid("two"))
    assert (found.messages, found.explanations) == ({}, {})

from driver import ids
from driver.controller.scheduler import state
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer

KEY, UID = ids.Key("default/pod"), ids.PodUid("one")


def told() -> state.SchedulerState:
    """A pod was told why it waits."""
    reported = state.SchedulerState()
    reported.observe_uid(KEY, UID)
    reported.messages[UID] = "No node fits"
    reported.explanations[UID] = explainer.Explanation(KEY, "", allocator_types.Unschedulable())
    return reported


def test_the_pending_reason_is_kept_while_the_refusal_holds() -> None:
    reported = told()
    reported.clear_messages(UID)
    assert (reported.messages, reported.explanations) == ({}, {})


def test_a_deleted_pods_reason_is_forgotten() -> None:
    reported = told()
    reported.forget(KEY)
    assert (reported.messages, reported.explanations) == ({}, {})


def test_a_recreated_pod_has_no_reason() -> None:
    reported = told()
    reported.observe_uid(KEY, ids.PodUid("two"))
    assert (reported.messages, reported.explanations) == ({}, {})

from driver import ids
from driver.controller import memory
from driver.controller.allocation.whatif import nearest

KEY, UID = ids.Key("default/pod"), ids.PodUid("one")


def told() -> memory.Memory:
    """A pod was told why it waits."""
    found = memory.Memory()
    found.meet(KEY, UID)
    found.told[UID] = "No node fits"
    found.advice[UID] = nearest.Nearest(ids.NodeName("node-a"), None)
    return found


def test_the_nearest_fit_is_kept_as_long_as_the_refusal_holds() -> None:
    found = told()
    found.hush(UID)
    assert (found.told, found.advice) == ({}, {})


def test_with_a_pod_goes_what_it_was_told() -> None:
    found = told()
    found.forget(KEY)
    assert (found.told, found.advice) == ({}, {})


def test_another_pod_of_the_name_was_told_nothing() -> None:
    found = told()
    found.meet(KEY, ids.PodUid("two"))
    assert (found.told, found.advice) == ({}, {})

from dataclasses import replace

from driver import ids
from driver.scheduling.snapshot import allocation_hold
from tests.support.builders import objects


def test_a_hold_is_of_one_pod_and_every_leader_finds_the_same() -> None:
    pod = objects.pod()
    assert allocation_hold.pod_hold(pod) == allocation_hold.pod_hold(objects.pod())
    assert allocation_hold.is_hold_of(allocation_hold.pod_hold(pod), pod)
    assert not allocation_hold.is_hold_of(
        allocation_hold.pod_hold(pod), replace(pod, uid=ids.PodUid("another"))
    )


def test_a_pod_whose_uid_is_no_uuid_has_a_hold_too() -> None:
    odd = replace(objects.pod(), uid=ids.PodUid("odd"))
    assert allocation_hold.is_hold_of(allocation_hold.pod_hold(odd), odd)
    assert not allocation_hold.is_hold_of(allocation_hold.pod_hold(odd), objects.pod())

"""When claims lost their allocation, and how long the next one waits."""

from typing import Any

from driver import ids, names
from driver.resources.dra import claims
from driver.scheduling.lifecycle import released_claims
from tests.support.builders import objects

KEY = ids.Key("default/claim")
ALLOCATED = objects.claim(status=objects.allocated("node-a", "gpu-0"))


def open_claim(**metadata: Any) -> claims.Claim:
    raw = objects.a_claim()
    raw["metadata"] |= metadata
    return claims.parse(raw)


def test_a_claim_that_lost_its_allocation_waits_for_tries_that_began_before() -> None:
    memory = released_claims.ReleasedClaims()
    memory.set_claim(KEY, ALLOCATED, 10.0)
    memory.set_claim(KEY, open_claim(), 20.0)
    assert (
        memory.allocate_delay_s([open_claim()], created=5.0, now=21.0)
        == released_claims.SETTLE_S - 1.0
    )
    assert (
        memory.allocate_delay_s([open_claim()], created=5.0, now=20.0 + released_claims.SETTLE_S)
        == 0.0
    )


def test_a_pod_that_was_made_since_does_not_wait() -> None:
    memory = released_claims.ReleasedClaims()
    memory.set_claim(KEY, ALLOCATED, 10.0)
    memory.set_claim(KEY, open_claim(), 20.0)
    assert memory.allocate_delay_s([open_claim()], created=20.5, now=21.0) <= 0.0


def test_a_claim_that_never_had_one_does_not_wait() -> None:
    memory = released_claims.ReleasedClaims()
    memory.set_claim(KEY, open_claim(), 20.0)
    memory.set_claim(KEY, open_claim(finalizers=[names.CLAIM_FINALIZER]), 20.1)
    assert memory.allocate_delay_s([open_claim()], created=0.0, now=20.2) <= 0.0


def test_a_new_claim_with_the_finalizer_of_admission_does_not_wait() -> None:
    memory = released_claims.ReleasedClaims()
    memory.set_claim(KEY, open_claim(finalizers=[names.CLAIM_FINALIZER]), 20.0)
    assert memory.allocate_delay_s([open_claim()], created=0.0, now=20.2) <= 0.0


def test_another_leader_may_have_released_what_is_met_with_the_mark() -> None:
    memory = released_claims.ReleasedClaims()
    memory.set_claim(KEY, open_claim(annotations={names.RELEASED: "true"}), 20.0)
    assert (
        memory.allocate_delay_s([open_claim()], created=0.0, now=20.0) == released_claims.SETTLE_S
    )


def test_a_claim_that_is_gone_or_allocated_again_is_forgotten() -> None:
    memory = released_claims.ReleasedClaims()
    memory.set_claim(KEY, ALLOCATED, 10.0)
    memory.set_claim(KEY, open_claim(), 20.0)
    memory.set_claim(KEY, ALLOCATED, 21.0)
    assert memory.allocate_delay_s([open_claim()], created=0.0, now=21.0) <= 0.0
    memory.set_claim(KEY, None, 22.0)
    memory.set_claim(KEY, open_claim(), 23.0)
    assert memory.allocate_delay_s([open_claim()], created=0.0, now=23.0) <= 0.0

"""The protocol of allocation and binding, explored for two nodes, pods, claims and leaders."""

from dataclasses import replace

import pytest

from tests.properties import agreement

WHOLE = agreement.Protocol()


def explored(protocol: agreement.Protocol) -> agreement.Explored:
    return agreement.Explorer(protocol).explore()


def test_no_interleaving_binds_a_pod_away_from_its_claim_or_gives_a_gpu_twice() -> None:
    result = explored(WHOLE)
    assert result.states > 100_000
    assert (result.bound_away, result.given_twice) == (0, 0)


@pytest.mark.parametrize("step", ["conditional", "reads_pod", "parts", "settles"])
def test_without_one_of_its_steps_a_pod_is_bound_away(step: str) -> None:
    assert explored(replace(WHOLE, **{step: False})).bound_away


def test_without_the_fence_a_gpu_is_given_twice() -> None:
    assert explored(replace(WHOLE, fence=False)).given_twice


def test_the_pods_entry_may_be_written_with_the_allocation_if_it_is_parted_first() -> None:
    both = replace(WHOLE, hold_alone=False)
    assert not explored(both).bound_away
    assert explored(replace(both, parts=False)).bound_away


def test_a_pod_bound_away_by_a_scheduler_that_stood_still_is_repaired() -> None:
    frozen = replace(WHOLE, settles=False)
    assert explored(frozen).unrepaired == 0
    assert explored(replace(frozen, repairs=False)).unrepaired

import pytest

from driver import ids, names
from driver.devices.health import Ailment, PollResult, RecoveryAction
from driver.kubeletplugin.health import reset_policy
from driver.kubeletplugin.health.reset_policy import GpuUse

ASKS = PollResult(recovery=RecoveryAction.GPU_RESET)
CLAIM = ids.ClaimUid("uid-1")


def ailing(key: str, value: str) -> Ailment:
    return Ailment(key, value, "NoSchedule", "")


@pytest.mark.parametrize("action", list(RecoveryAction))
def test_a_reset_answers_two_of_the_actions_and_no_other(action: RecoveryAction) -> None:
    answers = action in {RecoveryAction.GPU_RESET, RecoveryAction.DRAIN_AND_RESET}
    assert reset_policy.asks_for_reset([ailing(names.TAINT_RECOVERY, action.name)]) is answers
    assert (reset_policy.blocking_reason(GpuUse(PollResult(recovery=action))) == "") is answers


def test_other_faults_request_no_reset() -> None:
    assert not reset_policy.asks_for_reset(
        [ailing(names.TAINT_XID, "48"), ailing(names.TAINT_LOST, "lost")]
    )
    assert not reset_policy.asks_for_reset([])


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (GpuUse(PollResult(problem="GPU is lost")), "cannot be read: GPU is lost"),
        (GpuUse(PollResult(recovery=None)), "does not ask"),
        (GpuUse(PollResult(recovery=77)), "does not ask"),
        (GpuUse(ASKS, claims=(CLAIM,)), "held by claims: uid-1"),
        (
            GpuUse(ASKS, daemons=("a", "b", "c", "d")),
            "MPS daemons are wanted on it: a, b, c and 1 mo",
        ),
        (GpuUse(ASKS, mig_instances=2), "2 MIG instances"),
        (GpuUse(ASKS, processes=1), "1 processes"),
    ],
)
def test_anything_on_a_gpu_keeps_it_from_being_reset(use: GpuUse, why: str) -> None:
    assert why in reset_policy.blocking_reason(use)

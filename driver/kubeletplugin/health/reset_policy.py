"""Whether a GPU may be reset: it asks for it, and nothing is on it that a reset would end. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from driver import ids, names
from driver.devices import health

RESET_ACTIONS: Final = frozenset(
    {health.RecoveryAction.GPU_RESET, health.RecoveryAction.DRAIN_AND_RESET}
)
"""What a reset of the GPU answers; the others want more than that."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class GpuUse:
    """What is on a GPU, as found at one moment.

    `claims` have a face of it by their records, or may have one: their record is damaged. `parts`
    counts its MIG instances, whoever made them; `processes` those that compute or draw on it;
    `daemons` are the MPS daemons that are wanted on it.
    """

    poll: health.PollResult
    claims: tuple[ids.ClaimUid, ...] = ()
    daemons: tuple[str, ...] = ()
    mig_instances: int = 0
    processes: int = 0


def asks_for_reset(ailments: Iterable[health.Ailment]) -> bool:
    """Whether a GPU with these asks for a reset."""
    wanted = {action.name for action in RESET_ACTIONS}
    return any(one.key == names.TAINT_RECOVERY and one.value in wanted for one in ailments)


def blocking_reason(use: GpuUse) -> str:
    """Why a GPU is not to be reset, in words; "" when it is."""
    return next(_blocking_reasons(use), "")


def _blocking_reasons(use: GpuUse) -> Iterator[str]:
    if use.poll.problem:
        yield f"it cannot be read: {use.poll.problem}"
    if use.poll.recovery_action not in RESET_ACTIONS:
        yield "it does not ask for a reset any more"
    if use.claims:
        yield f"held by claims: {_abbreviate(use.claims)}"
    if use.daemons:
        yield f"MPS daemons are wanted on it: {_abbreviate(use.daemons)}"
    if use.mig_instances:
        yield f"{use.mig_instances} MIG instances lie on it, and a reset takes them away"
    if use.processes:
        yield f"{use.processes} processes are on it"


def _abbreviate(found: tuple[str, ...]) -> str:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{', '.join(found[:_SHOWN])}{more}"

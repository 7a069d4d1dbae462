"""Decides whether a GPU may be reset: it asks for it, and nothing on it would be ended. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from driver import ids, names
from driver.devices import health

RESET_ACTIONS: Final = frozenset(
    {health.RecoveryAction.GPU_RESET, health.RecoveryAction.DRAIN_AND_RESET}
)
"""Recovery actions that a GPU reset satisfies; the others require more."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Use of a GPU at one moment.

    `claims` have a face of it by their records, or may have one: their record is damaged.
    `mig_instances` counts its MIG instances, foreign ones included; `processes` those that compute
    or draw on it; `daemons` are the desired MPS daemons on it.
    """

    poll: health.PollResult
    claims: tuple[ids.ClaimUid, ...] = ()
    daemons: tuple[str, ...] = ()
    mig_instances: int = 0
    processes: int = 0


def asks_for_reset(ailments: Iterable[health.Ailment]) -> bool:
    """Return whether a GPU with these ailments asks for a reset."""
    action_names = {action.name for action in RESET_ACTIONS}
    return any(
        ailment.key == names.TAINT_RECOVERY and ailment.value in action_names
        for ailment in ailments
    )


def blocking_reason(use: GpuUse) -> str:
    """Return why a GPU must not be reset; "" if it may be."""
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


def _abbreviate(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"

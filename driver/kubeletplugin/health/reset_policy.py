"""Whether a GPU may be reset: it asks for it, and nothing is on it that a reset would end. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from driver import ids, names
from driver.devices import health

ASKED: Final = frozenset({health.Recovery.GPU_RESET, health.Recovery.DRAIN_AND_RESET})
"""What a reset of the GPU answers; the others want more than that."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Use:
    """What is on a GPU, as found at one moment.

    `claims` have a face of it by their records, or may have one: their record is damaged. `parts`
    counts its MIG instances, whoever made them; `processes` those that compute or draw on it;
    `daemons` are the MPS daemons that are wanted on it.
    """

    signs: health.Signs
    claims: tuple[ids.ClaimUid, ...] = ()
    daemons: tuple[str, ...] = ()
    parts: int = 0
    processes: int = 0


def asked(ailments: Iterable[health.Ailment]) -> bool:
    """Whether a GPU with these asks for a reset."""
    wanted = {action.name for action in ASKED}
    return any(one.key == names.TAINT_RECOVERY and one.value in wanted for one in ailments)


def hindrance(use: Use) -> str:
    """Why a GPU is not to be reset, in words; "" when it is."""
    return next(_hindrances(use), "")


def _hindrances(use: Use) -> Iterator[str]:
    if use.signs.problem:
        yield f"it cannot be read: {use.signs.problem}"
    if use.signs.action not in ASKED:
        yield "it does not ask for a reset any more"
    if use.claims:
        yield f"held by claims: {_some(use.claims)}"
    if use.daemons:
        yield f"MPS daemons are wanted on it: {_some(use.daemons)}"
    if use.parts:
        yield f"{use.parts} MIG instances lie on it, and a reset takes them away"
    if use.processes:
        yield f"{use.processes} processes are on it"


def _some(found: tuple[str, ...]) -> str:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{', '.join(found[:_SHOWN])}{more}"

"""Decides whether a record has outlived its claim (F-11). Pure.

The kubelet unprepares the claims it knows. Those it forgot, as after its state was wiped, are ours
to clean up; but dropping a record too early lets a second claim onto a GPU in use.
"""

from dataclasses import dataclass
from enum import Enum

from driver import errors
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import checkpoint
from driver.resources.dra import claims

LOOKS = 2
"""In a row, a minute apart: by then the kubelet has compared claims and pods itself (60 s)."""

ReadResult = claims.Claim | errors.RationError
"""The API server's answer to reading the record's claim by its name."""


class Act(Enum):
    """Action on a record.

    `KEEP`: its claim exists, or is unknown. `WATCH`: its claim is gone, for the first time in a
    row. `RECLAIM`: unprepare it.
    """

    KEEP = "keep"
    WATCH = "watch"
    RECLAIM = "reclaim"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`gone` counts the consecutive reads that found no such claim; `reason` is for people."""

    act: Act
    gone: int = 0
    reason: str = ""


def decide(record: checkpoint.Record, answer: ReadResult, gone: int) -> Verdict:
    """Return the verdict on a record whose claim was not found in the last `gone` reads.

    A claim that exists with the record's UID keeps it, allocated or not: the kubelet may still use
    it. Any failure other than the server's NotFound for that object keeps it too.
    """
    reason = _gone_reason(record.claim, answer)
    if not reason:
        return Verdict(Act.KEEP)
    act = Act.RECLAIM if gone + 1 >= LOOKS else Act.WATCH
    return Verdict(act, gone + 1, reason)


def is_gone(ref: ports.ClaimRef, answer: ReadResult) -> bool:
    """Return whether the server reported that there is no such claim."""
    return bool(_gone_reason(ref, answer))


def _gone_reason(ref: ports.ClaimRef, answer: ReadResult) -> str:
    """Return how the claim is known to be gone; empty if it is not."""
    if isinstance(answer, claims.Claim):
        return "" if answer.uid == ref.uid else f"its name is now that of {answer.uid}"
    # A server that does not serve the kind, and a proxy, answer 404 as well: they name no claim.
    named = f'"{ref.name}" not found'
    if isinstance(answer, errors.NotFound) and named in answer.message:
        return "it was deleted"
    return ""

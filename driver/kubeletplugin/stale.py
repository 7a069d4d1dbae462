"""Whether a record has outlived its claim (F-11). Pure.

The kubelet unprepares what it knows of. What it forgot, as after its state was wiped, is left to
us; but a record that is dropped too early lets a second claim onto a GPU in use.
"""

from dataclasses import dataclass
from enum import Enum

from driver import errors
from driver.kubeletplugin import checkpoint, ports
from driver.resources import claims

LOOKS = 2
"""In a row, a minute apart: by then the kubelet has compared claims and pods itself (60 s)."""

Answer = claims.Claim | errors.RationError
"""What the API server said when it was asked for the record's claim by its name."""


class Act(Enum):
    """What to do about a record.

    `KEEP`: its claim is there, or nobody can say. `WATCH`: its claim is gone, for the first time of
    late. `RECLAIM`: unprepare it.
    """

    KEEP = "keep"
    WATCH = "watch"
    RECLAIM = "reclaim"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`gone` counts the looks in a row that found no such claim; `why` is for people."""

    act: Act
    gone: int = 0
    why: str = ""


def judge(record: checkpoint.Record, answer: Answer, gone: int) -> Verdict:
    """The verdict on a record whose claim was found gone `gone` times in a row before.

    A claim that exists with the record's UID keeps it, allocated or not: the kubelet may still be
    at it. Any failure but the server's word that there is no such object keeps it too.
    """
    why = _gone(record.claim, answer)
    if not why:
        return Verdict(Act.KEEP)
    act = Act.RECLAIM if gone + 1 >= LOOKS else Act.WATCH
    return Verdict(act, gone + 1, why)


def is_gone(ref: ports.ClaimRef, answer: Answer) -> bool:
    """Whether the server said that there is no such claim, at this look."""
    return bool(_gone(ref, answer))


def _gone(ref: ports.ClaimRef, answer: Answer) -> str:
    """How the claim is known to be gone; empty when it is not."""
    if isinstance(answer, claims.Claim):
        return "" if answer.uid == ref.uid else f"its name is now that of {answer.uid}"
    # A server that does not serve the kind, and a proxy, answer 404 as well: they name no claim.
    named = f'"{ref.name}" not found'
    if isinstance(answer, errors.NotFound) and named in answer.message:
        return "it was deleted"
    return ""

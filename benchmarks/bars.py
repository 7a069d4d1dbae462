"""What is wanted of a figure, and whether it is met. Pure."""

import re
from dataclasses import dataclass

from benchmarks import record

_LIMIT = re.compile(r"(<=|>=) ([0-9.]+)(?: (.*))?")
UNTOLD = "too short to tell"
"""What a suite says when it cannot say."""
_MORE_IS_BETTER = ("/s", "decisions/s", "claims/s", "pods/s", "%")
_LESS_IS_BETTER = ("ms", "s", "ms/pod", "MiB", "min", "h", "GPU-h", "files", "threads")


@dataclass(frozen=True, slots=True)
class Goal:
    """A row of the page.

    `id` is of a figure (`suite/key`) or, where there is none yet, any. `bar`: `<= 3.0 ms` is of
    ours, `>= 10 x` of the ratio to the reference, a word is what the suite has to say. `anchor`:
    what others reach, published or measured elsewhere, with its `source`. `held`: the test that
    holds it instead of a figure. `absent`: why there is neither.
    """

    id: str
    bar: str = ""
    anchor: str = ""
    source: str = ""
    name: str = ""
    held: str = ""
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Goals that belong together."""

    title: str
    goals: tuple[Goal, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`met` None: it cannot be said. `by`: how far off, in words; "" when met."""

    met: bool | None
    by: str = ""


def judge(one: record.Figure, bar: str) -> Verdict:
    """A figure beside its bar."""
    limit = _LIMIT.fullmatch(bar)
    if limit is None:
        told = bool(bar) and one.says not in {"", UNTOLD}
        return Verdict(one.says == bar if told else None)
    found = one.ratio if limit[3] == "x" else one.ours
    if found is None:
        return Verdict(None)
    wanted = float(limit[2])
    if found <= wanted if limit[1] == "<=" else found >= wanted:
        return Verdict(met=True)
    larger, smaller = max(found, wanted), min(found, wanted)
    return Verdict(False, f"by {larger / smaller:.2g} x" if smaller else f"by {larger:g}")  # noqa: FBT003


def more_is_better(one: record.Figure, bar: str) -> bool | None:
    """Which way a figure is to go, by its unit, or by its bar; None: neither says."""
    if one.unit in _MORE_IS_BETTER:
        return True
    if one.unit in _LESS_IS_BETTER:
        return False
    limit = _LIMIT.fullmatch(bar)
    return None if limit is None else limit[1] == ">="

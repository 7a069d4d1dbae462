"""The comparison: an allocator of ours beside kube-scheduler's own, on one random world a seed.

"The reference can" means that it allocates on at least one node. On a node where it ends in an
error it cannot; what that says of us depends on the error (`deviations`). A run-time error of CEL
aborts the reference, but only if its search meets the device before it is done. Ours refuses a node
when it must evaluate such a device. Hence a node is *contested* when a device usable there makes a
selector of some request fail: there both yes and no are right, and a yes must still be valid.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.oracle import deviations, reference, scenarios, selectors, shrink, truth, validity

Raw = dict[str, Any]
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class GaveUp:
    """Ours stopped searching: no answer, no disagreement."""

    why: str


Answer = tuple[str, Sequence[Raw]] | str | GaveUp
Ours = Callable[[scenarios.Cluster, Sequence[Raw]], Answer]
"""A node and one `status.allocation` a claim; or why nothing fits; or GaveUp."""


class Kind(StrEnum):
    """Relation of two answers."""

    AGREE_YES = "agree_yes"
    AGREE_NO = "agree_no"
    WE_ONLY = "we_only"
    REFERENCE_ONLY = "reference_only"
    INVALID = "invalid"
    REFERENCE_ERROR = "reference_error"
    GAVE_UP = "gave_up"


BAD = frozenset({Kind.WE_ONLY, Kind.REFERENCE_ONLY, Kind.INVALID})


@dataclass(frozen=True, slots=True)
class Verdict:
    """`why` are the problems, the deviation, or the reason; `node` is ours, or one of its nodes."""

    kind: Kind
    why: str = ""
    node: str = ""

    @property
    def bad(self) -> bool:
        """Return whether it is a disagreement."""
        return self.kind in BAD


@dataclass(frozen=True, slots=True)
class Judges:
    """References: kube-scheduler's allocator, and Kubernetes' CEL."""

    reference: reference.Reference
    believed: truth.Truth


@contextmanager
def judges(path: Path | None = None) -> Iterator[Judges]:
    """Both programs, running."""
    with reference.Reference(path) as running, selectors.Selectors(path) as cel:
        yield Judges(running, truth.Truth(cel))


def compare(seed: int, ours: Ours, judging: Judges) -> Verdict:
    """The verdict on the world of a seed."""
    world, answers = judging.reference.play(scenarios.draft(seed))
    return judge(world, answers, ours(world.cluster, world.claims), judging)


def again(world: scenarios.World, ours: Ours, judging: Judges) -> Verdict:
    """The verdict on a world as it is: what a shrinker asks."""
    answers = judging.reference.answers(world)
    return judge(world, answers, ours(world.cluster, world.claims), judging)


def judge(
    world: scenarios.World, answers: reference.Answers, answer: Answer, judging: Judges
) -> Verdict:
    """The verdict on our answer to a world of which the reference told this."""
    if isinstance(answer, GaveUp):
        return Verdict(Kind.GAVE_UP, answer.why)
    if isinstance(answer, str):
        return _of_no(world, answers, answer, judging)
    node, allocations = answer
    wrong = validity.problems(world.cluster, world.claims, node, allocations, judging.believed)
    if wrong:
        return Verdict(Kind.INVALID, "; ".join(wrong), node)
    if node in answers.fitting:
        return Verdict(Kind.AGREE_YES, node=node)
    excuse = deviations.of_refusal(world, allocations, answers.errors.get(node))
    if excuse:
        return Verdict(Kind.REFERENCE_ERROR, excuse, node)
    return Verdict(Kind.WE_ONLY, str(answers.errors.get(node, "it does not fit")), node)


def _of_no(
    world: scenarios.World, answers: reference.Answers, reason: str, judging: Judges
) -> Verdict:
    if not answers.fitting:
        return Verdict(Kind.AGREE_NO, reason)
    excuse = ""
    for node, allocations in answers.fitting.items():
        if deviations.contested(world, node, judging.believed):
            excuse = "cel"
            continue
        wrong = validity.problems(world.cluster, world.claims, node, allocations, judging.believed)
        if not wrong:
            return Verdict(Kind.REFERENCE_ONLY, reason, node)
        excuse = f"its allocation is wrong: {'; '.join(wrong)}"
    return Verdict(Kind.REFERENCE_ERROR, excuse)


@dataclass(slots=True)
class Tally:
    """Counts of a run."""

    kinds: Counter[str]
    bad: dict[int, Verdict]
    errors: Counter[str]
    micros: list[int]
    fits: int = 0

    def text(self) -> str:
        """Return it as text for people."""
        mean = sum(self.micros) / max(len(self.micros), 1)
        lines = [f"{kind}: {count}" for kind, count in self.kinds.most_common()]
        lines.append(f"fits: {self.fits} of {self.kinds.total()}")
        lines.append(f"reference: {mean:.0f} us a node, at most {max(self.micros, default=0)} us")
        lines += [f"reference error {kind}: {count} nodes" for kind, count in self.errors.items()]
        return "\n".join(lines)


def run(seeds: Sequence[int], ours: Ours, judging: Judges) -> Tally:
    """Every seed compared."""
    tally = Tally(Counter(), {}, Counter(), [])
    for seed in seeds:
        world, answers = judging.reference.play(scenarios.draft(seed))
        try:
            answer = ours(world.cluster, world.claims)
        except Exception as e:
            e.add_note(f"on seed {seed}")
            raise
        verdict = judge(world, answers, answer, judging)
        owner = f" ({verdict.why})" if verdict.kind is Kind.REFERENCE_ERROR else ""
        tally.kinds[f"{verdict.kind}{owner}"] += 1
        tally.fits += bool(answers.fitting)
        tally.micros += answers.micros
        tally.errors.update(deviations.kind_of(error) for error in answers.errors.values())
        if verdict.bad:
            tally.bad[seed] = verdict
    return tally


def smallest(seed: int, ours: Ours, judging: Judges) -> tuple[scenarios.World, Verdict]:
    """The world of a seed made small while the two disagree in the same way."""
    world, _ = judging.reference.play(scenarios.draft(seed))
    kind = again(world, ours, judging).kind
    small = shrink.smallest(world, lambda world: again(world, ours, judging).kind is kind)
    return small, again(small, ours, judging)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare a range of seeds with our allocator; 1 where they disagree."""
    from tests.oracle import ours  # noqa: PLC0415 - the loop itself knows no allocator

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    options = parser.parse_args(arguments)
    begun = time.perf_counter()
    with judges() as judging:
        tally = run(range(options.first, options.first + options.seeds), ours.decide, judging)
        messages = [tally.text(), f"{time.perf_counter() - begun:.0f} s"]
        for seed in list(tally.bad)[:_SHOWN]:
            small, verdict = smallest(seed, ours.decide, judging)
            messages.append(f"seed {seed}: {verdict.kind}: {verdict.why}\n{shrink.text(small)}")
    messages.append(f"disagreements: {list(tally.bad)}")
    sys.stdout.write("\n".join(messages) + "\n")
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.nodes`: what a day costs, and how long jobs wait, with nodes on demand.

Ten days of two traces (`days`), each with an empty cluster at its beginning, in a time of its own:
nodes are asked for by the controller's plan, come after some minutes, and go when they were empty
for five (`world`). Beside it stand the same jobs on nodes that are always on, as many as the
fullest moment takes; with a node of its own for each pod; and with first fit, no gangs, much as
Karpenter does it (`asking`). A figure is the median of five days.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from benchmarks import record
from benchmarks.nodes import asking, days, lives
from driver.runtime import gc_tuning

OPENB: tuple[int, ...] = (119, 123, 130, 140, 147)
GAVEL: tuple[int, ...] = (46, 47, 82, 83, 87)
"""Days of the traces with many jobs."""
_FIGURES: tuple[tuple[str, str, Callable[[lives.Outcome], float]], ...] = (
    ("node-hours", "h", lambda one: one.node_hours),
    ("cost", "GPU-h", lambda one: one.cost),
    ("GPU-hours paid for each used", "x", lambda one: one.paid_for_used),
    ("nodes asked for", "", lambda one: float(len(one.lives))),
    ("mean wait", "min", lambda one: one.mean_wait),
    ("p95 wait", "min", lambda one: one.p95_wait),
    ("longest wait", "min", lambda one: one.longest_wait),
)
Outcomes = dict[str, list[lives.Outcome]]
"""By policy, of some days."""


def main() -> int:
    """Measure, print; store where all was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one day of each; nothing is stored")
    options = parser.parse_args()
    start = record.Start()
    gc_tuning.set_thresholds()  # as the controller
    folder = days.folder()
    if folder is None:
        print("the traces are not here: name their folder in $RATION_TRACES")
        return 1
    some = slice(2, 3) if options.quick else slice(None)
    figures = [
        *_figures("openb", _play([days.of_openb(folder, day) for day in OPENB[some]])),
        *_figures("Gavel", _play([days.of_gavel(folder, day) for day in GAVEL[some]])),
    ]
    if options.quick:
        print(*(record.line(figure) for figure in figures), sep="\n")
    else:
        record.write("nodes", figures, start)
    return 0


def _play(days_played: Sequence[days.Day]) -> Outcomes:
    outcomes: Outcomes = {name: [] for name in asking.POLICIES}
    for day in days_played:
        for name, play in asking.POLICIES.items():
            outcome = play(day.jobs)
            outcomes[name].append(outcome)
            summary = f"{len(outcome.lives):4} nodes, {outcome.cost:7.1f} GPU-h"
            print(
                f"{day.name:10} {name:20} {summary}, wait {outcome.mean_wait:.2f} min", flush=True
            )
    return outcomes


def _figures(trace: str, outcomes: Outcomes) -> list[record.Figure]:
    ours = outcomes[asking.OURS]
    return [
        record.figure(
            f"{trace}, {quantity} beside {other}",
            unit,
            [value(outcome) for outcome in ours],
            [value(outcome) for outcome in theirs],
            seed=days.SEED if trace == "Gavel" else 0,
        )
        for other, theirs in outcomes.items()
        if other != asking.OURS
        for quantity, unit, value in _FIGURES
    ]


if __name__ == "__main__":
    sys.exit(main())

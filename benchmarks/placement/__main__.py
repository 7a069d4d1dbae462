"""`python -m benchmarks.placement [--seeds 42,43] [--traces default]`: how much of a fleet is used.

Every pod of the trace arrives once, none leaves; the figures are GPUs in use, in percent, when all
have arrived (130 % of the fleet is asked), beside policies from elsewhere on the same draws.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks import record
from benchmarks.placement import openb, ours, reference
from driver.controller.allocation import policies, ranking

_WITH = ("FGD", "best fit", "first fit", "random")


def main() -> int:
    """Measure, print; store what was asked by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="42", help="one or several, or `all` (42 to 51)")
    parser.add_argument("--traces", default=",".join(openb.TRACES), help="some of the traces")
    given = parser.parse_args()
    folder = openb.folder()
    if folder is None:
        print("the traces are not here: name their folder in $RATION_TRACES")
        return 1
    seeds = [*openb.SEEDS] if given.seeds == "all" else [*map(int, given.seeds.split(","))]
    figures: list[record.Figure] = []
    for name in given.traces.split(","):
        figures += _of_trace(name, openb.load(folder, name), seeds)
    if given.traces == parser.get_default("traces"):
        record.write("placement", figures)
    return 0


def _of_trace(name: str, trace: openb.Trace, seeds: Sequence[int]) -> list[record.Figure]:
    full: dict[str, list[float]] = {}
    asked: dict[str, list[float]] = {}
    rates: list[float] = []
    for seed in seeds:
        arriving = openb.arrivals(trace, seed)
        begun = time.monotonic()
        mine = _ours(trace, arriving)
        rates.append(len(arriving) / (time.monotonic() - begun))
        for policy, used in {"ours": mine, **_others(trace, arriving, seed)}.items():
            full.setdefault(policy, []).append(100 * used[-1] / trace.capacity)
            at = _when_all_is_asked(trace, arriving)
            asked.setdefault(policy, []).append(100 * used[at] / trace.capacity)
            print(
                f"{name} {seed} {policy}: {full[policy][-1]:.2f} %, "
                f"{asked[policy][-1]:.2f} % when 100 % is asked",
                flush=True,
            )
    return [
        *(
            record.figure(f"{name}: GPUs in use beside {one}", "%", full["ours"], full[one], bar)
            for one, bar in zip(_WITH, (">= 1 x", "", "", ""), strict=True)
        ),
        record.figure(f"{name}: when 100 % is asked", "%", asked["ours"], asked["FGD"], ">= 1 x"),
        record.figure(f"{name}: decisions on 1,213 nodes", "/s", rates, bar=">= 2000 /s"),
    ]


def _ours(trace: openb.Trace, arriving: Sequence[openb.Pod]) -> list[int]:
    judge = ranking.of(",".join(policies.DEFAULT), ours.usual(trace))
    return ours.replay(trace, arriving, judge)


def _others(trace: openb.Trace, arriving: Sequence[openb.Pod], seed: int) -> dict[str, list[int]]:
    fgd = reference.Fgd(openb.usual(trace))
    return {
        "FGD": reference.replay(trace, arriving, fgd),
        "best fit": reference.replay(trace, arriving, reference.best_fit),
        "first fit": reference.replay(trace, arriving, reference.first_fit),
        "random": reference.at_random(trace, arriving, seed),
    }


def _when_all_is_asked(trace: openb.Trace, arriving: Sequence[openb.Pod]) -> int:
    """The arrival with which 100 % of the fleet has been asked."""
    asked = 0
    for at, pod in enumerate(arriving):
        asked += pod.demand
        if asked >= trace.capacity:
            return at
    return len(arriving) - 1


if __name__ == "__main__":
    sys.exit(main())

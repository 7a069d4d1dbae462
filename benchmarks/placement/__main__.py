"""`python -m benchmarks.placement`: how well GPUs are given out, beside policies from elsewhere.

`openb`: every pod of the trace arrives once, none leaves; the figures are GPUs in use, in percent,
when all have arrived (130 % of the fleet is asked). `mig`: instances come and go; the figures are
how many of a hundred find room. All policies see the same draws.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks import record
from benchmarks.placement import beside, fleet, openb, ours, streams
from driver.controller.allocation import policies, ranking

_WITH = ("FGD", "best fit", "first fit", "random")
_SUITES = ("openb", "mig")
_GPUS, _ARRIVALS = 32, 1000
_OFTEN = 20
"""Seconds between two lines of progress."""


def main() -> int:
    """Measure, print; store what was asked by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", choices=(*_SUITES, []), help="all, if none is named")
    parser.add_argument("--seeds", default="42", help="one or several, or `all` (42 to 51)")
    parser.add_argument("--traces", default=",".join(openb.TRACES), help="some of the traces")
    parser.add_argument("--arrivals", type=int, default=_ARRIVALS, help="instances in a stream")
    given = parser.parse_args()
    folder = openb.folder()
    suites = given.suites or _SUITES
    if "openb" in suites and folder is None:
        print("the traces are not here: name their folder in $RATION_TRACES")
        return 1
    seeds = [*openb.SEEDS] if given.seeds == "all" else [*map(int, given.seeds.split(","))]
    figures: list[record.Figure] = []
    if "mig" in suites:
        figures += _of_streams(seeds, given.arrivals)
    for name in given.traces.split(",") if "openb" in suites and folder else ():
        figures += _of_trace(name, openb.load(folder, name), seeds)
    asked = given.traces, given.arrivals, given.suites
    if asked == (parser.get_default("traces"), _ARRIVALS, []):
        record.write("placement", figures)
    else:
        print(*map(record.line, figures), sep="\n")
    return 0


def _of_trace(name: str, trace: openb.Trace, seeds: Sequence[int]) -> list[record.Figure]:
    full: dict[str, list[float]] = {}
    asked: dict[str, list[float]] = {}
    rates: list[float] = []
    for seed in seeds:
        arriving = openb.arrivals(trace, seed)
        judge = ranking.of(",".join(policies.DEFAULT), ours.usual(trace))
        mine = ours.replay(trace, arriving, judge, _progress(f"{name} {seed}"))
        rates.append(mine.rate)
        used = {"ours": mine.used, **beside.others(trace, arriving, seed)}
        course = beside.Course(trace, arriving, used)
        for policy in used:
            full.setdefault(policy, []).append(course.full(policy))
            asked.setdefault(policy, []).append(course.asked(policy))
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


def _progress(what: str) -> Callable[[int, int], None]:
    """Says now and then how much is done."""
    told = time.monotonic()

    def tell(done: int, of: int) -> None:
        nonlocal told
        if time.monotonic() - told > _OFTEN:
            told = time.monotonic()
            print(f"{what}: {done} of {of}", flush=True)

    return tell


def _of_streams(seeds: Sequence[int], arrivals: int) -> list[record.Figure]:
    """The best of the others is that of the mean over the seeds; at most a tenth of a point is
    lost to it (`tests/oracle/test_streams.py` asserts that on more)."""
    figures: list[record.Figure] = []
    rates: list[float] = []
    judge = ranking.of(",".join(policies.DEFAULT))
    scores = streams.Others(streams.model()).scores()
    for mix in streams.MIXES:
        for load in streams.LOADS:
            mine: list[float] = []
            others: dict[str, list[float]] = {name: [] for name in scores}
            for seed in seeds:
                stream = streams.draw(mix, load, _GPUS, arrivals, seed)
                allocator = fleet.Ours(_GPUS, judge)
                mine.append(streams.accepted(allocator, stream))
                rates.append(allocator.rate)
                for name, score in scores.items():
                    others[name].append(streams.accepted(streams.Plain(_GPUS, score), stream))
                beside_it = ", ".join(f"{name} {found[-1]:.2f}" for name, found in others.items())
                print(f"MIG {mix} {load} {seed}: ours {mine[-1]:.2f}, {beside_it}", flush=True)
            what = f"MIG {mix} at load {load}: instances with room beside"
            figures += [
                record.figure(f"{what} {name}", "%", mine, found) for name, found in others.items()
            ]
    return [*figures, record.figure(f"MIG: decisions on {_GPUS} GPUs", "/s", rates)]


if __name__ == "__main__":
    sys.exit(main())

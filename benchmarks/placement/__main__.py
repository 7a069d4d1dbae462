"""`python -m benchmarks.placement`: how well GPUs are given out, beside policies from elsewhere.

`openb`: every pod of the trace arrives once, none leaves; the figures are GPUs in use, in percent,
when all have arrived (130 % of the fleet is asked). `mig`: instances come and go; the figures are
how many of a hundred find room. All policies see the same draws.
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks import record
from benchmarks.placement import beside, fleet, openb, ours, streams
from driver.runtime import gc_tuning
from driver.scheduling.allocator import policies
from driver.scheduling.allocator.policies import ranking

_WITH = ("FGD", "best fit", "first fit", "random")
_SUITES = ("openb", "mig")
_GPUS, _ARRIVALS, _STREAMS = 32, 1000, 3
_OFTEN = 20
"""Seconds between two lines of progress."""
_CALIBRATIONS = 16
"""How often the calibrators are measured within a replay, which takes up to half a minute."""


def main() -> int:
    """Measure, print; store what was asked by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", choices=(*_SUITES, []), help="all, if none is named")
    parser.add_argument("--seeds", default="42", help="one or several, or `all` (42 to 51)")
    parser.add_argument("--traces", default=",".join(openb.TRACES), help="some of the traces")
    parser.add_argument("--arrivals", type=int, default=_ARRIVALS, help="instances in a stream")
    options = parser.parse_args()
    start = record.Start()
    gc_tuning.set_thresholds()  # as the controller
    folder = openb.folder()
    suites = options.suites or _SUITES
    if "openb" in suites and folder is None:
        print("the traces are not here: name their folder in $RATION_TRACES")
        return 1
    seeds = [*openb.SEEDS] if options.seeds == "all" else [*map(int, options.seeds.split(","))]
    figures: list[record.Figure] = []
    if "mig" in suites:
        figures += record.parts(partial(_of_streams, seeds[:_STREAMS], options.arrivals))
    if "openb" in suites and folder is not None:
        for name in options.traces.split(","):
            figures += record.parts(partial(_of_trace, name, openb.load(folder, name), seeds))
    chosen = options.traces, options.arrivals, options.suites
    if chosen == (parser.get_default("traces"), _ARRIVALS, []):
        record.write("placement", figures, start)
    else:
        print(*map(record.line, figures), sep="\n")
    return 0


def _of_trace(name: str, trace: openb.Trace, seeds: Sequence[int]) -> list[record.Figure]:
    full: dict[str, list[float]] = {}
    at_capacity: dict[str, list[float]] = {}
    rates: list[float] = []
    calibrations = record.Calibrations()
    for seed in seeds:
        arriving = openb.arrivals(trace, seed)
        judge = ranking.parse_policies(",".join(policies.DEFAULT), ours.usual(trace))
        mine = ours.replay(trace, arriving, judge, _progress(f"{name} {seed}", calibrations))
        rates.append(mine.rate)
        used = {"ours": mine.used, **beside.others(trace, arriving, seed)}
        course = beside.Course(trace, arriving, used)
        for policy in used:
            full.setdefault(policy, []).append(course.full(policy))
            at_capacity.setdefault(policy, []).append(course.asked(policy))
            print(
                f"{name} {seed} {policy}: {full[policy][-1]:.2f} %, "
                f"{at_capacity[policy][-1]:.2f} % when 100 % is asked",
                flush=True,
            )
    return [
        *(
            record.figure(f"{name}: GPUs in use beside {policy}", "%", full["ours"], full[policy])
            for policy in _WITH
        ),
        record.figure(f"{name}: when 100 % is asked", "%", at_capacity["ours"], at_capacity["FGD"]),
        calibrations.add_to(record.figure(f"{name}: decisions on 1,213 nodes", "/s", rates)),
    ]


def _progress(what: str, calibrations: record.Calibrations) -> Callable[[int, int], None]:
    """Print how much is done now and then, and measure the calibrators, between two decisions."""
    printed = time.monotonic()

    def tell(done: int, of: int) -> None:
        nonlocal printed
        if done % -(-of // _CALIBRATIONS) == 0:
            calibrations.take()
        if time.monotonic() - printed > _OFTEN:
            printed = time.monotonic()
            print(f"{what}: {done} of {of}", flush=True)

    return tell


def _of_streams(seeds: Sequence[int], arrivals: int) -> list[record.Figure]:
    """Through the allocator, so they are short; `tests/oracle/test_streams.py` has longer ones."""
    figures: list[record.Figure] = []
    rates: list[float] = []
    for mix, load in itertools.product(streams.MIXES, streams.LOADS):
        accepted_by: dict[str, list[float]] = {}
        for seed in seeds:
            accepted, rate = _of_stream(streams.draw(mix, load, _GPUS, arrivals, seed))
            rates.append(rate)
            print(f"MIG {mix} {load} {seed}:", {k: round(v, 2) for k, v in accepted.items()})
            for name, value in accepted.items():
                accepted_by.setdefault(name, []).append(value)
        mine = accepted_by.pop("ours")
        best = max(accepted_by, key=lambda name: statistics.fmean(accepted_by[name]))
        accepted_by["the best of them"] = accepted_by[best]
        for name, others in accepted_by.items():
            title = f"MIG {mix}, load {load}: instances with room beside {name}"
            figures.append(record.figure(title, "%", mine, others))
    return [*figures, record.figure(f"MIG: decisions on {_GPUS} GPUs", "/s", rates)]


def _of_stream(stream: Sequence[streams.Arrival]) -> tuple[dict[str, float], float]:
    """What each policy accepts of a hundred; our decisions in a second."""
    allocator = fleet.Ours(_GPUS, ranking.parse_policies(",".join(policies.DEFAULT)))
    mine = streams.accepted(allocator, stream)
    plain = {
        name: streams.accepted(streams.Plain(_GPUS, score), stream)
        for name, score in streams.Others(streams.model()).scores().items()
    }
    return {"ours": mine, **plain}, allocator.rate


if __name__ == "__main__":
    sys.exit(main())

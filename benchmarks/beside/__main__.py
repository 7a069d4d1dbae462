"""`python -m benchmarks.beside`: our plugin and a Go driver, in turn: four minutes, no cluster.

The Go driver is the least that upstream's helper lets one write (`goplugin`): it publishes, records
and writes CDI specs, but does no work on any GPU. The API server is a stand-in, the same for both.
The least plugin in Python (`least`) tells what is the language's and the libraries' of ours.
Then NVIDIA's own driver, if RATION_NVIDIA_DRIVER names its folder: each on a simulated machine,
without the limit of its client's requests.
"""

import argparse
import functools
import itertools
import os
import time
from collections.abc import Sequence
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import record, timing
from benchmarks.beside import sides
from benchmarks.hold import mix
from benchmarks.node import process
from driver.kubeletplugin import ports
from hack.cluster import nvidia_driver
from tests.fakes import waiting

REPEATS, ROUNDS, BATCHES, PARTS = 5, 256, 8, 16
TURN = 8
"""Single calls of a side, until it is another's turn; `ROUNDS` are of a repeat."""
AT_ONCE, CROWDS = (1, 8, 32, 64, mix.BURST), 3
"""Pods of a node that come at once, and how often in a repeat."""
QUICK = 2
_REST_S, _REST_MS = 0.2, 10.0
"""At rest is a process that used no more than `_REST_MS` of a CPU in `_REST_S`."""


@dataclass(slots=True)
class Sample:
    """Times of one side: milliseconds, seconds for `starts`; MiB for `rss`.

    `prepares` and `unprepares` are by repeat, `at_once` by the number of pods.
    """

    prepares: list[list[float]] = field(default_factory=list)
    unprepares: list[list[float]] = field(default_factory=list)
    at_once: dict[int, list[float]] = field(default_factory=lambda: {pods: [] for pods in AT_ONCE})
    again: list[float] = field(default_factory=list)
    batches: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    rss: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    part_prepares: list[float] = field(default_factory=list)
    part_unprepares: list[float] = field(default_factory=list)


def main() -> None:
    """Measure in turn, print, store."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="two repeats; nothing is stored")
    quick = arguments.parse_args().quick
    start = record.Start()
    repeats = QUICK if quick else REPEATS
    with sides.beside_go() as three:
        ours, theirs, least = _measure(three, repeats)
    figures = [*_figures(ours, theirs), *_floor(least, theirs)]
    folder = os.environ.get(nvidia_driver.FOLDER_VARIABLE)
    if folder:
        with sides.beside_nvidia(Path(folder)) as both:
            figures += _beside_nvidia(*_measure(both, repeats))
    else:
        print(f"without NVIDIA's driver: {nvidia_driver.FOLDER_VARIABLE} names no folder")
    if quick:
        print(*map(record.line, figures), sep="\n")
    else:
        record.write("beside", figures, start)


Rounds = Sequence[Sequence[float]]
Measured = Sequence[tuple[sides.Side, Sample]]
"""The sides, all with a process that lives, and what was measured of each."""


def _measure(every: Sequence[sides.Side], repeats: int) -> list[Sample]:
    """Measure new processes of all sides, over and over.

    The sides' turns are short: what slows the machine for a second slows each of them.
    """
    measured = [(side, Sample()) for side in every]
    for _ in range(repeats):
        for side, sample in measured:
            _start(side, sample)
        _single_calls(measured)
        for _ in range(BATCHES):
            for side, sample in measured:
                sample.batches.append(timing.wall_ms(functools.partial(_at_once, side)))
                _unprepare(side, side.claims)
        _crowds(measured)
        _parts(measured)
        for side, sample in measured:
            sample.used.append(process.rss(side.pid()))
    return [sample for _, sample in measured]


def _start(side: sides.Side, into: Sample) -> None:
    """Start a process anew; calls begin when all that it publishes is there."""
    into.starts.append(side.again())
    waiting.until(lambda: _is_at_rest(side.pid()), sides.WITHIN_S)
    into.rss.append(process.rss(side.pid()))
    _prepare(side, side.claims[:1])
    _unprepare(side, side.claims[:1])
    into.prepares.append([])
    into.unprepares.append([])
    into.cpu.append(0.0)


def _single_calls(measured: Measured) -> None:
    for _ in range(ROUNDS // TURN):
        for side, sample in measured:
            began_ms = process.cpu_ms(side.pid())
            for number in range(TURN):
                claim = (side.claims[number % len(side.claims)],)
                sample.prepares[-1].append(timing.wall_ms(functools.partial(_prepare, side, claim)))
                sample.again.append(timing.wall_ms(functools.partial(_prepare, side, claim)))
                sample.unprepares[-1].append(
                    timing.wall_ms(functools.partial(_unprepare, side, claim))
                )
            sample.cpu[-1] += (process.cpu_ms(side.pid()) - began_ms) / ROUNDS


def _crowds(measured: Measured) -> None:
    for pods, _ in itertools.product(AT_ONCE, range(CROWDS)):
        for side, sample in measured:
            crowd = side.shares[:pods]
            if crowd:
                sample.at_once[pods].append(timing.wall_ms(functools.partial(_crowd, side, crowd)))
                _unprepare(side, crowd)


def _parts(measured: Measured) -> None:
    for _ in range(PARTS):
        for side, sample in measured:
            if side.parts:
                sample.part_prepares.append(
                    timing.wall_ms(functools.partial(_prepare, side, side.parts))
                )
                sample.part_unprepares.append(
                    timing.wall_ms(functools.partial(_unprepare, side, side.parts))
                )


def _is_at_rest(pid: int) -> bool:
    earlier_ms = process.cpu_ms(pid)
    time.sleep(_REST_S)
    return process.cpu_ms(pid) - earlier_ms <= _REST_MS


def _at_once(side: sides.Side) -> None:
    """A call for each claim, all at the same time."""
    with futures.ThreadPoolExecutor(len(side.claims)) as pool:
        list(pool.map(lambda claim: _prepare(side, (claim,)), side.claims))


def _crowd(side: sides.Side, claims: Sequence[ports.ClaimRef]) -> None:
    """A call for each claim, all before the first answer, as a kubelet's pod workers make them."""
    plugin = side.plugin()
    for call in [plugin.start_prepare(claim) for claim in claims]:
        _check(dict(call.result().claims))


def _prepare(side: sides.Side, claims: Sequence[ports.ClaimRef]) -> None:
    _check(side.plugin().prepare(*claims))


def _unprepare(side: sides.Side, claims: Sequence[ports.ClaimRef]) -> None:
    _check(side.plugin().unprepare(*claims))


def _check(entries: dict[str, Any]) -> None:
    for entry in entries.values():
        if entry.error:
            raise RuntimeError(entry.error)


def _all(rounds: Rounds) -> list[float]:
    return [*itertools.chain(*rounds)]


def _p99(name: str, ours: Rounds, theirs: Rounds) -> record.Figure:
    """The 99th percentile of single calls; one pause of the machine slows calls of one turn."""
    return record.tail(name, "ms", ours, theirs, stretch=TURN)


def _beside_nvidia(ours: Sample, theirs: Sample) -> list[record.Figure]:
    def named(name: str) -> str:
        return f"beside NVIDIA's driver: {name}"

    def p50(name: str, mine: list[float], other: list[float]) -> record.Figure:
        return record.figure(named(f"{name}, p50"), "ms", mine, other)

    return [
        p50("Prepare", _all(ours.prepares), _all(theirs.prepares)),
        _p99(named("Prepare, p99"), ours.prepares, theirs.prepares),
        p50("Prepare again", ours.again, theirs.again),
        p50("Unprepare", _all(ours.unprepares), _all(theirs.unprepares)),
        p50("8 Prepares at once", ours.batches, theirs.batches),
        p50("Prepare of a MIG device", ours.part_prepares, theirs.part_prepares),
        p50("Unprepare of a MIG device", ours.part_unprepares, theirs.part_unprepares),
        record.figure(named("CPU of Prepare, again, Unprepare"), "ms", ours.cpu, theirs.cpu),
        record.figure(named("RSS, idle"), "MiB", ours.rss, theirs.rss),
    ]


def _floor(least: Sample, theirs: Sample) -> list[record.Figure]:
    """Figures of the least plugin in Python, beside the Go driver."""

    def named(name: str) -> str:
        return f"least Python plugin: {name}"

    return [
        record.figure(named("Prepare, p50"), "ms", _all(least.prepares), _all(theirs.prepares)),
        record.figure(named("Prepare again, p50"), "ms", least.again, theirs.again),
        record.figure(named("8 Prepares at once"), "ms", least.batches, theirs.batches),
        record.figure(named("CPU of Prepare, again, Unprepare"), "ms", least.cpu, theirs.cpu),
        record.figure(named("RSS, idle"), "MiB", least.rss, theirs.rss),
        *(
            record.figure(named(_pods(pods)), "ms", least.at_once[pods], theirs.at_once[pods])
            for pods in AT_ONCE
        ),
    ]


def _pods(count: int) -> str:
    return f"pods at once, all prepared: {count}"


def _figures(ours: Sample, theirs: Sample) -> list[record.Figure]:
    return [
        record.figure(
            "Prepare, one at a time, p50", "ms", _all(ours.prepares), _all(theirs.prepares)
        ),
        _p99("Prepare, one at a time, p99", ours.prepares, theirs.prepares),
        record.figure("Prepare again, p50", "ms", ours.again, theirs.again),
        record.figure("8 Prepares at once, wall for all", "ms", ours.batches, theirs.batches),
        record.figure(
            "Unprepare, one at a time, p50", "ms", _all(ours.unprepares), _all(theirs.unprepares)
        ),
        _p99("Unprepare, one at a time, p99", ours.unprepares, theirs.unprepares),
        record.figure("CPU of a Prepare, the same again, an Unprepare", "ms", ours.cpu, theirs.cpu),
        record.figure("start to first slice", "s", ours.starts, theirs.starts),
        record.figure("RSS, idle", "MiB", ours.rss, theirs.rss),
        record.figure("RSS, after some hundred calls", "MiB", ours.used, theirs.used),
        *(
            record.figure(_pods(pods), "ms", ours.at_once[pods], theirs.at_once[pods])
            for pods in AT_ONCE
        ),
    ]


if __name__ == "__main__":
    main()

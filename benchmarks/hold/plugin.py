"""Plugins' processes before a kubelet that is played: one rests, one holds claims and gets bursts.

The machine, the MPS supervisor and all sockets are the real ones.
"""

import contextlib
import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import record
from benchmarks.hold import asking, ground, mix
from benchmarks.node import process
from driver.kube import gvr
from driver.kubeletplugin import ports
from tests.e2e import playground
from tests.fakes import battering

NODE = "hold"
ROUNDS, BATCH, BURSTS, GPUS = 3, 64, 6, 8
LIVE = (0, 16, 64, 128, mix.LIVE)
"""Claims on the node, that which is prepared included; 0: it alone."""
SETTLE_S, PUBLISHED_S, QUIET_S = 30.0, 10.0, 60.0
"""What follows a start is not idleness: the first listing, labels, what was found.

`PUBLISHED_S`: until the slices are written, and a first call can be measured.
"""
_WITHIN_S = 60.0
_NO_LOOKS = "--usage-interval-seconds=3600"
"""All claims of a round are new to the plugin's first look after it, which writes each a status.

That burst of writes, every ten seconds, would slow whichever number of claims is measured then. Of
claims that live for long a look writes next to nothing.
"""
_INTERVAL_S, _BUSY = 0.5, 0.05
"""A plugin that took less than this part of a CPU for so long has written what it had to."""


def rest(idle_s: float, meanwhile: Callable[[], list[record.Figure]]) -> list[record.Figure]:
    """Measure a node of eight GPUs, whose plugin is idle for `idle_s` seconds or more.

    `meanwhile` measures something else, before another API server, while nobody asks the plugin.
    """
    with _node() as (api, node):
        return [*_published_anew(api, node), *_idle(api, node, idle_s, meanwhile)]


def work() -> list[record.Figure]:
    """Measure a node of eight GPUs whose plugin prepares beside live claims, and in bursts."""
    with _node() as (_, node):
        _offer_shares(node, _NO_LOOKS)
        time.sleep(PUBLISHED_S)
        claims = Claims(node)
        return record.parts(functools.partial(_live, claims), functools.partial(_bursts, claims))


@contextlib.contextmanager
def _node() -> Iterator[tuple[ground.Ground, battering.Battered]]:
    """A node with an API server of its own."""
    with ground.served() as api:
        api.kube.create(gvr.NODES, {"metadata": {"name": NODE}})
        with battering.battered(api.kube, api.plugin(NODE), NODE) as node:
            yield api, node


def _offer_shares(node: battering.Battered, *flags: str) -> None:
    """Start the plugin again with other shares of every GPU, so that all of it is to be written."""
    offerings = node.own / "offerings.yaml"
    offerings.write_text(mix.OFFERINGS)
    node.processes[-1].terminate()
    node.processes[-1].wait(_WITHIN_S)
    node.start(f"--offerings={offerings}", *flags)


def _published_anew(api: ground.Ground, node: battering.Battered) -> list[record.Figure]:
    """Count the slices that are written after a start with other shares."""
    with _asked(api) as requests:
        _offer_shares(node)
        time.sleep(SETTLE_S)
    slices = sum(
        count
        for name, count in requests().kinds.items()
        if name.endswith(" resourceslices") and name.split()[0] in asking.WRITES
    )
    written = record.figure(
        "slices written by a plugin that publishes anew, HGX H100", "", [slices]
    )
    return [record.replaced(written, slices, requests().words)]


def _idle(
    api: ground.Ground,
    node: battering.Battered,
    idle_s: float,
    meanwhile: Callable[[], list[record.Figure]],
) -> list[record.Figure]:
    """Nobody asks the plugin for anything: its CPU at first, alone on the machine; its requests.

    Some of what it looks at, it looks at every five minutes.
    """
    pid = node.processes[-1].pid
    quiet_s = min(idle_s, QUIET_S)
    with _asked(api) as asked:
        began, busy_ms = time.monotonic(), process.cpu_ms(pid)
        time.sleep(quiet_s)
        quiet_s, busy_ms = time.monotonic() - began, process.cpu_ms(pid) - busy_ms
        figures = meanwhile()
        time.sleep(max(0.0, idle_s - (time.monotonic() - began)))
        took = time.monotonic() - began
    requests = f"{took:.0f} s: {asked().words or 'nothing asked'}"
    busy_s = busy_ms / 1000
    busy_part = asking.percent(busy_s, quiet_s)
    writes, lists = (asking.an_hour(count, took) for count in (asked().writes, asked().of("list")))
    named = (
        ("CPU of an idle plugin", "% of a CPU", busy_part, f"{busy_s:.2f} s of {quiet_s:.0f} s"),
        ("API writes of an idle plugin an hour", "", writes, requests),
        ("lists of an idle plugin an hour", "", lists, requests),
    )
    return [
        *(
            record.replaced(record.figure(name, unit, [value]), value, spread)
            for name, unit, value, spread in named
        ),
        *figures,
    ]


@contextlib.contextmanager
def _asked(api: ground.Ground) -> Iterator[Callable[[], asking.Asked]]:
    """What the plugin asks of the API server meanwhile, to be had at the end."""
    earlier = len(_lines(api.audit))
    counted: list[asking.Asked] = []
    yield lambda: counted[0]
    counted.append(asking.read(_lines(api.audit)[earlier:], ground.PLUGIN))


def _lines(audit: Path) -> list[str]:
    return audit.read_text().splitlines()


@dataclass(frozen=True, slots=True)
class Claims:
    """Of a node, made with the devices that they were given."""

    node: battering.Battered

    def of(self, name: str, devices: Sequence[str]) -> list[ports.ClaimRef]:
        """New ones, a device each."""
        return [
            self.node.claim(f"{name}-{number}", device, mix.amounts(device))
            for number, device in enumerate(devices)
        ]

    def at_once(self, call: str, refs: Sequence[ports.ClaimRef]) -> float:
        """Seconds until the last is answered, of a call each, as a kubelet's pods make them."""
        began = time.perf_counter()
        calls = [self.node.start_call(call, (ref,)) for ref in refs]
        for ref, pending in zip(refs, calls, strict=True):
            _check(pending.result(), ref)
        return time.perf_counter() - began

    def alone(self, call: str, ref: ports.ClaimRef) -> float:
        """Seconds of one call."""
        return self.at_once(call, (ref,))


def _live(claims: Claims) -> list[record.Figure]:
    """A time-slice beside ever more others, on every GPU in turn, and ever fewer again.

    Each number of claims is met twice a round, so that neither a minute nor some seconds in which
    the machine is slow are most of what is known about it.
    """
    refs = claims.of("live", mix.shares(claims.node.published()))
    walls: dict[int, list[list[float]]] = {count: [] for count in LIVE}
    busy: dict[int, list[list[float]]] = {count: [] for count in LIVE}
    around = {count: record.Calibrations([]) for count in LIVE}
    prepared = 0
    for count in (*LIVE, *reversed(LIVE)) * ROUNDS:
        for ref in refs[prepared:count]:
            claims.alone("prepare", ref)
        claims.at_once("unprepare", refs[count:prepared])
        prepared = count
        _await_rest(claims.node.processes[-1].pid)
        around[count].take()
        samples = _beside(claims, refs, count)
        around[count].take()
        walls[count].append([wall for wall, _ in samples])
        busy[count].append([cpu for _, cpu in samples])
    return [
        figure
        for count in LIVE
        for figure in _prepares(count, walls[count], busy[count], around[count])
    ]


def _await_rest(pid: int) -> None:
    """Return once the statuses of claims are written, which else is done beside the next calls."""
    playground.until(functools.partial(_rests, pid), _WITHIN_S, "the plugin rests")


def _rests(pid: int) -> bool:
    began, began_ms = time.monotonic(), process.cpu_ms(pid)
    time.sleep(_INTERVAL_S)
    busy_s = (process.cpu_ms(pid) - began_ms) / 1000
    return busy_s < _BUSY * (time.monotonic() - began)


def _beside(
    claims: Claims, refs: Sequence[ports.ClaimRef], count: int
) -> list[tuple[float, float]]:
    """Milliseconds of each Prepare and of the plugin's CPU in it; `count` claims are live after."""
    pid = claims.node.processes[-1].pid
    samples = []
    for number in range(BATCH):
        ref = refs[number % GPUS]
        if count:
            claims.alone("unprepare", ref)
        began_ms = process.cpu_ms(pid)
        wall_ms = 1000 * claims.alone("prepare", ref)
        samples.append((wall_ms, process.cpu_ms(pid) - began_ms))
        if not count:
            claims.alone("unprepare", ref)
    return samples


def _prepares(
    count: int,
    walls: list[list[float]],
    busy: list[list[float]],
    around: record.Calibrations,
) -> list[record.Figure]:
    """Return the means of the rounds with `count` live claims, as fast as the machine was `around`.

    A pause of the machine slows a turn of the GPUs.
    """
    name = f"Prepare at {count} live claims on {GPUS} GPUs"
    return [
        around.figure(f"{name}, p50", "ms", list(map(statistics.median, walls))),
        around.figure(f"{name}, p99", "ms", record.tails(walls, stretch=GPUS)),
        around.figure(f"CPU of a {name}", "ms", list(map(statistics.median, busy))),
    ]


def _bursts(claims: Claims) -> list[record.Figure]:
    """The pods of a full node at once, over again: of MIG, MPS and time-slices, and of the last."""
    devices = claims.node.published()
    named = {"": mix.burst(devices), ", time-slices alone": mix.shares(devices)[: mix.BURST]}
    figures = []
    for suffix, chosen in named.items():
        refs = claims.of(f"burst{len(suffix)}", chosen)
        taken = []
        calibrations = record.Calibrations()
        for _ in calibrations.between(range(BURSTS)):
            taken.append(claims.at_once("prepare", refs))
            claims.at_once("unprepare", refs)
        name = f"{len(refs)} pods of a node in one burst, all prepared{suffix}"
        figures.append(calibrations.figure(name, "s", taken))
    return figures


def _check(answer: object, ref: ports.ClaimRef) -> None:
    entry = answer.claims[ref.uid]  # type: ignore[attr-defined]
    if entry.error:
        raise RuntimeError(f"{ref.name}: {entry.error}")

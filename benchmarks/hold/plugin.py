"""A plugin's process before a kubelet that is played: it rests, holds 256 claims, and gets 110.

The machine, the MPS supervisor and all sockets are the real ones.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import record
from benchmarks.hold import asking, ground, mix
from driver.kube import gvr
from driver.kubeletplugin import ports
from tests.fakes import battering

NODE = "hold"
ROUNDS, ALONE, BURSTS, GPUS = 200, 50, 5, 8
SETTLE_S = 30.0
"""What follows a start is not idleness: the first listing, labels, what was found."""
_TICKS = os.sysconf("SC_CLK_TCK")
_WITHIN_S = 60.0


def measure(idle_s: float) -> list[record.Figure]:
    """On a node of eight GPUs; `idle_s` seconds of it the plugin is left alone."""
    with ground.served() as api:
        api.kube.create(gvr.NODES, {"metadata": {"name": NODE}})
        with battering.battered(api.kube, api.plugin(NODE), NODE) as node:
            anew = _published_anew(api, node)
            claims = Claims(node)
            return [*anew, *_idle(api, node, idle_s), *_live(claims), *_bursts(claims)]


def _published_anew(api: ground.Ground, node: battering.Battered) -> list[record.Figure]:
    """Started again with other shares of every GPU, so that all of it is to be written."""
    told = node.own / "offerings.yaml"
    told.write_text(mix.OFFERINGS)
    with _asked(api) as asked:
        node.processes[-1].terminate()
        node.processes[-1].wait(_WITHIN_S)
        node.start(f"--offerings={told}")
        time.sleep(SETTLE_S)
    slices = sum(
        count
        for name, count in asked().kinds.items()
        if name.endswith(" resourceslices") and name.split()[0] in asking.WRITES
    )
    found = record.figure("slices written by a plugin that publishes anew, HGX H100", "", [slices])
    return [record.replaced(found, slices, asked().words)]


def _idle(api: ground.Ground, node: battering.Battered, idle_s: float) -> list[record.Figure]:
    """Nothing happens, and nobody asks the plugin for anything."""
    pid = node.processes[-1].pid
    with _asked(api) as asked:
        began, busy = time.monotonic(), _cpu_s(pid)
        time.sleep(idle_s)
        took, busy = time.monotonic() - began, _cpu_s(pid) - busy
    told = f"{took:.0f} s: {asked().words or 'nothing asked'}"
    busy_part = asking.percent(busy, took)
    writes, lists = (asking.an_hour(count, took) for count in (asked().writes, asked().of("list")))
    named = (
        ("CPU of an idle plugin", "% of a CPU", busy_part, f"{busy:.2f} s of {took:.0f} s"),
        ("API writes of an idle plugin an hour", "", writes, told),
        ("lists of an idle plugin an hour", "", lists, told),
    )
    return [
        record.replaced(record.figure(name, unit, [value]), value, spread)
        for name, unit, value, spread in named
    ]


@contextlib.contextmanager
def _asked(api: ground.Ground) -> Iterator[Callable[[], asking.Asked]]:
    """What the plugin asks of the API server meanwhile, to be had at the end."""
    before = len(_lines(api.audit))
    found: list[asking.Asked] = []
    yield lambda: found[0]
    found.append(asking.read(_lines(api.audit)[before:], ground.PLUGIN))


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
        for ref, one in zip(refs, calls, strict=True):
            _check(one.result(), ref)
        return time.perf_counter() - began

    def alone(self, call: str, ref: ports.ClaimRef) -> float:
        """Seconds of one call."""
        return self.at_once(call, (ref,))


def _live(claims: Claims) -> list[record.Figure]:
    """One where no other is, then one where 255 are, on every GPU in turn."""
    refs = claims.of("live", mix.shares(claims.node.published()))
    single, taken = [], []
    for number in range(ALONE):
        single.append(1000 * claims.alone("prepare", refs[number % GPUS]))
        claims.alone("unprepare", refs[number % GPUS])
    for ref in refs:
        claims.alone("prepare", ref)
    for number in range(ROUNDS):
        claims.alone("unprepare", refs[number % GPUS])
        taken.append(1000 * claims.alone("prepare", refs[number % GPUS]))
    claims.at_once("unprepare", refs)
    name = f"Prepare at {len(refs)} live claims on {GPUS} GPUs"
    middle = record.figure(f"{name}, p50", "ms", taken)
    slowest = record.figure(f"{name}, p99", "ms", taken)
    return [
        middle,
        record.replaced(slowest, record.percentile(taken, 0.99)),
        record.figure("Prepare of a time-slice where no other claim is, p50", "ms", single),
    ]


def _bursts(claims: Claims) -> list[record.Figure]:
    """The pods of a full node at once, over again: of MIG, MPS and time-slices, and of the last."""
    devices = claims.node.published()
    named = {"": mix.burst(devices), ", time-slices alone": mix.shares(devices)[: mix.BURST]}
    found = []
    for what, chosen in named.items():
        refs = claims.of(f"burst{len(what)}", chosen)
        taken = []
        for _ in range(BURSTS):
            taken.append(claims.at_once("prepare", refs))
            claims.at_once("unprepare", refs)
        name = f"{len(refs)} pods of a node in one burst, all prepared{what}"
        found.append(record.figure(name, "s", taken))
    return found


def _check(answer: object, ref: ports.ClaimRef) -> None:
    entry = answer.claims[ref.uid]  # type: ignore[attr-defined]
    if entry.error:
        raise RuntimeError(f"{ref.name}: {entry.error}")


def _cpu_s(pid: int) -> float:
    """Processor time that a process has taken, its children's not."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS

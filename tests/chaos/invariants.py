"""Invariants as functions of an observation. Pure.

A problem is not yet a breach: while pods come and go, and for a while after a fault, many things
are under way. Each rule has a patience, and a problem that outlives it is a breach
(`patience.Patience`). What is never to be has none, faults or not.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from driver import names
from driver.resources.dra import slices
from tests.chaos import seen

EXCLUSIVE = 3
"""NVML's exclusive-process compute mode."""
FULL_COMPUTE = 100
TWICE_S = 0.01
"""Seen at two looks: one look reads one file after the other, and no claim comes back."""
LEASE_S = 8.0
"""A leader renews every two to three seconds."""


class Rule(StrEnum):
    """Rule with the seconds that a violation may last."""

    patience_s: float
    world: bool

    def __new__(cls, value: str, patience_s: float, world: bool = False) -> Self:  # noqa: FBT001, FBT002 - an enum's values
        """A string, its patience, and whether the next fault waits for it."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.patience_s = patience_s
        member.world = world
        return member

    OVERLAP = "hardware-in-two-claims", TWICE_S
    DAMAGED = "damaged-record", TWICE_S
    PROCESS = "process-not-running", 60.0, True
    LEADER = "no-leader", 60.0, True
    SLICES = "slices-not-as-the-hardware", 90.0, True
    TAINTS = "taint-of-a-healed-fault", 60.0, True
    NODE = "node-not-ready", 90.0, True
    SOCKETS = "plugin-not-registered", 60.0, True
    SPEC = "record-and-spec-differ", 30.0
    RECORD = "pod-runs-without-a-record", 30.0
    CLAIM = "record-without-a-claim", 240.0
    MIG = "mig-not-as-recorded", 45.0
    MODE = "compute-mode-not-as-recorded", 45.0
    TURN = "time-slice-not-as-recorded", 45.0
    DAEMON = "mps-daemons-not-as-recorded", 60.0
    SHM = "mounts-not-as-daemons", 60.0
    STRAY = "stray", 60.0
    POD_WAITS = "pod-does-not-start", 240.0
    POD_STAYS = "pod-does-not-go", 150.0


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that does not hold for a subject; `words` are for people and may change."""

    rule: Rule
    subject: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Devices by node that the hardware publishes when healthy."""

    devices: Mapping[str, frozenset[str]]


def problems(world: seen.World, baseline: Baseline) -> Iterator[Problem]:
    """Everything that does not hold now."""
    yield from processes(world)
    yield from leader(world)
    yield from published(world, baseline)
    yield from pods(world)
    for node in world.nodes:
        for rule in (overlaps, specs, mig, modes, turns, daemons, left_over):
            yield from rule(node)
        yield from recorded(world, node)


def processes(world: seen.World) -> Iterator[Problem]:
    """Every component runs."""
    for name, state in world.conditions.items():
        if state != "running":
            yield Problem(Rule.PROCESS, name, state)


def leader(world: seen.World) -> Iterator[Problem]:
    """Somebody leads, and says so again and again."""
    if world.lease_age_s > LEASE_S:
        yield Problem(Rule.LEADER, "Lease", f"not renewed for {world.lease_age_s:.0f} s")


def published(world: seen.World, baseline: Baseline) -> Iterator[Problem]:
    """Nodes are Ready, and publish what they have, whole and without taints of ill health."""
    for node, expected in baseline.devices.items():
        if node not in world.nodes_ready:
            yield Problem(Rule.NODE, node)
        mine = [slice_ for slice_ in world.slices if slice_.node == node]
        newest = max((item.generation for item in mine), default=0)
        mine = [item for item in mine if item.generation == newest]
        device_names = {device.name for item in mine for device in item.devices}
        if device_names != expected or any(item.slice_count != len(mine) for item in mine):
            yield Problem(Rule.SLICES, node, _differ(device_names, expected))
        yield from _tainted(node, mine)


def _tainted(node: str, mine: Iterable[slices.Slice]) -> Iterator[Problem]:
    ill = {
        f"{taint.key}={taint.value}"
        for item in mine
        for device in item.devices
        for taint in device.taints
        if taint.key not in names.NO_FAULTS
    }
    for taint in sorted(ill):
        yield Problem(Rule.TAINTS, f"{node} {taint}")


def _differ(texts: Iterable[str], expected: Iterable[str]) -> str:
    more, less = sorted({*texts} - {*expected}), sorted({*expected} - {*texts})
    return f"{len(less)} missing {less[:2]}, {len(more)} too many {more[:2]}"


def pods(world: seen.World) -> Iterator[Problem]:
    """No pod waits, or stays, for ever."""
    for pod in world.pods:
        if pod.leaving:
            yield Problem(Rule.POD_STAYS, pod.uid, f"{pod.name} on {pod.node or 'no node'}")
        elif pod.phase == "Pending":
            yield Problem(Rule.POD_WAITS, pod.uid, f"{pod.name} on {pod.node or 'no node'}")


def overlaps(node: seen.Node) -> Iterator[Problem]:
    """No part of a GPU is in two claims' records."""
    memory = {gpu.uuid: gpu.memory for gpu in node.gpus}
    units = [(held, unit) for held in node.held for unit in held.units]
    units.sort(key=lambda pair: (pair[1].gpu, pair[0].uid))
    for gpu, group in itertools.groupby(units, key=lambda pair: pair[1].gpu):
        on_it = list(group)
        for (item, mine), (other, theirs) in itertools.combinations(on_it, 2):
            if item.uid != other.uid and _collide(mine, theirs):
                words = f"{item.name} and {other.name}: {mine} and {theirs}"
                yield Problem(Rule.OVERLAP, f"{node.name} {gpu} {item.uid} {other.uid}", words)
        yield from _too_much(node.name, memory.get(gpu, 0), [unit for _, unit in on_it])


def _collide(unit: seen.Unit, other: seen.Unit) -> bool:
    if unit.whole or other.whole or unit.sharing != other.sharing:
        return True
    return bool(unit.slices & other.slices)


def _too_much(node: str, memory: int, units: list[seen.Unit]) -> Iterator[Problem]:
    shares = [unit for unit in units if unit.sharing]
    taken, compute = sum(share.memory for share in shares), sum(share.compute for share in shares)
    if shares and ((memory and taken > memory) or compute > FULL_COMPUTE):
        words = f"{taken} of {memory} bytes, {compute} percent"
        yield Problem(Rule.OVERLAP, f"{node} {shares[0].gpu} shares", words)


def specs(node: seen.Node) -> Iterator[Problem]:
    """Yield records without a CDI spec, and specs without a record."""
    done = {held.uid for held in node.held if held.done}
    for uid in sorted(done ^ (node.specs - {held.uid for held in node.held if not held.done})):
        words = "no spec" if uid in done else "a spec and no record"
        yield Problem(Rule.SPEC, f"{node.name} {uid}", words)


def mig(node: seen.Node) -> Iterator[Problem]:
    """GPUs are cut as records say, and MIG is on only where one is."""
    for gpu, claims in _settled(node):
        places = {
            (start, size)
            for claim in claims
            for uuid, start, size in claim.places
            if uuid == gpu.uuid
        }
        if gpu.instances != places or gpu.mig != bool(places):
            words = f"MIG {gpu.mig}, instances {sorted(gpu.instances)}, recorded {sorted(places)}"
            yield Problem(Rule.MIG, f"{node.name} {gpu.uuid}", words)


def modes(node: seen.Node) -> Iterator[Problem]:
    """A GPU is exclusive where a claim made it so."""
    for gpu, claims in _settled(node):
        expected = EXCLUSIVE if any(gpu.uuid in claim.alone for claim in claims) else 0
        if gpu.compute_mode != expected:
            words = f"compute mode {gpu.compute_mode}, not {expected}"
            yield Problem(Rule.MODE, f"{node.name} {gpu.uuid}", words)


def turns(node: seen.Node) -> Iterator[Problem]:
    """A GPU's time slice is one that a claim has set."""
    for gpu, claims in _settled(node):
        expected = {claim.turns[gpu.uuid] for claim in claims if gpu.uuid in claim.turns} or {0}
        if gpu.timeslice not in expected:
            words = f"time slice {gpu.timeslice}, not {sorted(expected)}"
            yield Problem(Rule.TURN, f"{node.name} {gpu.uuid}", words)


def _settled(node: seen.Node) -> Iterator[tuple[seen.Gpu, list[seen.Held]]]:
    """GPUs whose claims are all prepared, and that were not reset under them."""
    for gpu in node.gpus:
        claims = [held for held in node.held if gpu.uuid in held.gpus]
        if gpu.uuid not in node.scarred and not gpu.lost and all(claim.done for claim in claims):
            yield gpu, claims


def daemons(node: seen.Node) -> Iterator[Problem]:
    """MPS daemons run, and are ready, for the GPUs of claims that want them, and for no other."""
    expected = {gpu for held in node.held for gpu in held.serves}
    for gpu in sorted(
        (expected ^ node.wanted) | (expected ^ node.running) | (expected - node.ready)
    ):
        if gpu in node.scarred:
            continue
        words = (
            f"recorded {gpu in expected}, asked for {gpu in node.wanted}, "
            f"running {gpu in node.running}, ready {gpu in node.ready}"
        )
        yield Problem(Rule.DAEMON, f"{node.name} {gpu}", words)
    for gpu in sorted(node.shm ^ node.running):
        if gpu not in node.scarred:
            yield Problem(Rule.SHM, f"{node.name} {gpu}", f"mounted {gpu in node.shm}")


def left_over(node: seen.Node) -> Iterator[Problem]:
    """Nothing lies about that is nobody's, and the kubelet finds one plugin."""
    if node.sockets != 1:
        yield Problem(Rule.SOCKETS, node.name, f"{node.sockets} registration sockets")
    elif not node.registered:
        yield Problem(Rule.SOCKETS, node.name, "not taken on anew")
    for stray in node.strays:
        rule = Rule.DAMAGED if ".damaged-" in stray else Rule.STRAY
        yield Problem(rule, f"{node.name} {stray}")


def recorded(world: seen.World, node: seen.Node) -> Iterator[Problem]:
    """Yield processes without a record, and records without a claim of this node."""
    running = {
        pod.uid: pod.name
        for pod in world.pods
        if pod.node == node.name and pod.phase == "Running" and not pod.leaving
    }
    done = {held.uid for held in node.held if held.done}
    here = set()
    for claim in world.claims:
        if claim.allocation is None:
            continue
        results = claim.allocation.results
        if not any(result.device.pool == node.name for result in results):
            continue
        here.add(claim.uid)
        users = [running[consumer.uid] for consumer in claim.consumers if consumer.uid in running]
        if users and claim.uid not in done:
            words = f"{claim.key} of {', '.join(users)}"
            yield Problem(Rule.RECORD, f"{node.name} {claim.uid}", words)
    for item in node.held:
        if item.uid not in here:
            yield Problem(Rule.CLAIM, f"{node.name} {item.uid}", item.name)

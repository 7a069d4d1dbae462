"""Devices planned for the first pending workload, and their limits. Pure.

Slurm's backfill scheduler calls such nodes PLANNED, EASY (Lifka, JSSPP 1995) a reservation. A plan
always has an end: lists, pages, metrics and refusals show its workload and end.
"""

import datetime as dt
import enum
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from driver import clock, ids
from driver.devices import faces
from driver.resources import reservations
from driver.scheduling.snapshot import snapshot

KEY: Final = ids.Key("head:")
"""Holder of planned devices in a view; no claim has such a key."""
PLAN_SENTENCE: Final = "Kept for it until"
"""Begins the sentence on a pod's condition from which the API shows that it has a plan."""

_PLAN_PATTERN = re.compile(rf"{PLAN_SENTENCE} (?P<until>\S+): (?P<gpus>.+)$", re.DOTALL)


class PlanReason(enum.StrEnum):
    """Reason for a plan."""

    KNOWN_END = "known-end"
    """All its blockers declare their end (ration.dev/max-run-time, activeDeadlineSeconds)."""
    STARVED = "starved"
    """It has waited longer than the starvation bound."""


@dataclass(frozen=True, slots=True)
class BackfillRules:
    """Bounds of plans for pods that wait on work without a known end.

    `starvation_s`: seconds of waiting after which such a pod may have devices planned for it, 0:
    never; where no Queue exists, only `without_queues`. A plan then lasts `hold_s` seconds, is
    followed by as long a rest, and takes at most `max_fraction` of the fleet's GPUs.
    """

    starvation_s: float = 3600.0
    hold_s: float = 900.0
    max_fraction: float = 0.5
    without_queues: bool = False

    def bound_s(self, *, queues: bool) -> float | None:
        """The starvation bound in seconds; None where there is none."""
        return self.starvation_s or None if queues or self.without_queues else None


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """Devices planned for a waiting pod or gang (`kind`, `key`: `namespace/name`).

    `devices` include such as others still use. `until`: from then on nothing is planned for it
    for a while, should it still wait.
    """

    kind: str
    key: ids.Key
    devices: tuple[reservations.HeldDevice, ...]
    since: dt.datetime
    until: dt.datetime
    reason: PlanReason

    @property
    def end(self) -> str:
        """`until` as RFC 3339, whole seconds."""
        return clock.rfc3339(self.until)

    @property
    def gpus(self) -> Mapping[ids.NodeName, frozenset[str]]:
        """GPUs by name, by node."""
        names: dict[ids.NodeName, set[str]] = defaultdict(set)
        for held in self.devices:
            device = held.device.device
            names[held.node].add(faces.gpu_name(device) or device)
        return {node: frozenset(names[node]) for node in sorted(names)}


class Sentence(NamedTuple):
    """The sentence on the condition of a pod with planned devices: `gpus` counts, by node."""

    until: str
    gpus: str


def parse_plan_sentence(message: str) -> Sentence | None:
    """Read the sentence that begins with `PLAN_SENTENCE` out of a condition's message."""
    match = _PLAN_PATTERN.search(message)
    return Sentence(match["until"], match["gpus"]) if match else None


def idle_gpus(plan: BackfillPlan, view: snapshot.Snapshot) -> Mapping[ids.NodeName, int]:
    """Return the number of unused planned GPUs, by node; nodes without one left out."""
    used: set[tuple[ids.NodeName, str]] = set()
    every: set[tuple[ids.NodeName, str]] = set()
    for held in plan.devices:
        gpu = held.node, faces.gpu_name(held.device.device) or held.device.device
        every.add(gpu)
        if any(holder.claim != KEY for holder in view.holders(held.device)):
            used.add(gpu)
    return dict(sorted(Counter(node for node, _ in every - used).items()))

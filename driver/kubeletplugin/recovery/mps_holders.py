"""Tells the claims of an MPS daemon who keeps it from taking commands.

A daemon talks to one control program at a time, and any tenant of it may bring one. A command takes
a moment; a shell that says nothing keeps the daemon for as long as it is open.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from driver import clock, ids, reasons
from driver.devices import mps_files
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import checkpoint
from driver.kubeletplugin.usage import claim_pods

STAYS_S: Final = 5.0
"""Held for so long it is no single command."""
AGAIN_S: Final = 300.0
"""Between two tellings of the same occurrence, whoever holds it then."""
_MOST = 5
"""Processes in a text: an event's note has 1024 bytes."""


@dataclass(slots=True)
class _Held:
    """An occurrence: when it began, when it was last told, and of whom."""

    since_s: float
    told_s: float = -math.inf
    told: frozenset[mps_files.Holder] = frozenset()

    @property
    def is_told(self) -> bool:
        return self.told_s > -math.inf


class MpsHolders:
    """Of one thread. Each occurrence is told once, with who holds the daemon, and so is its end."""

    def __init__(
        self,
        teller: plugin_events.Teller,
        pods_of: ports.PodsOf,
        known: claim_pods.Consumers,
        time: clock.Clock,
    ) -> None:
        self._teller = teller
        self._pods_of = pods_of
        self._consumers = known
        self._clock = time
        self._held: dict[str, _Held] = {}

    def begin(self, records: Iterable[checkpoint.Record], keys: Collection[str]) -> None:
        """A look begins: forget daemons without a claim."""
        self._consumers.begin(records)
        self._held = {key: held for key, held in self._held.items() if key in keys}

    def look(self, key: str, status: mps_files.Status, refs: Sequence[ports.ClaimRef]) -> None:
        """Tell the daemon's claims what has changed since the last look."""
        if not status.occupied:
            self._end(key, refs)
            return
        now = self._clock.monotonic()
        held = self._held.setdefault(key, _Held(now))
        holders = frozenset(status.holders)
        news = not held.is_told or (holders != held.told and now - held.told_s >= AGAIN_S)
        if now - held.since_s < STAYS_S or not news:
            return
        held.told, held.told_s = holders, now
        text = f"MPS daemon of {key} takes no command while {self._who(status.holders, refs)}"
        for ref in refs:
            self._teller.claim_warning(ref, reasons.Reason.MPS_CONTROL_HELD, text)

    def _end(self, key: str, refs: Sequence[ports.ClaimRef]) -> None:
        held = self._held.pop(key, None)
        if held is None or not held.is_told:
            return
        for ref in refs:
            text = f"MPS daemon of {key} takes commands again"
            self._teller.claim_notice(ref, reasons.Reason.MPS_CONTROL_FREED, text)

    def _who(self, holders: Sequence[mps_files.Holder], refs: Sequence[ports.ClaimRef]) -> str:
        """Say who holds a daemon of these claims, with their pods where those are known."""
        if not holders:
            return "a control program is connected to it, which is not seen"
        found = {holder: self._pods_of(holder.pid) for holder in holders[:_MOST]}
        self._consumers.settle(refs, {pod for pods in found.values() for pod in pods})
        known = {
            pod: name for pods in self._consumers.pods(refs).values() for pod, name in pods.items()
        }
        named = (f"{holder.words()}{_of(pods, known)}" for holder, pods in found.items())
        more = f" and {len(holders) - _MOST} more" if len(holders) > _MOST else ""
        verb = "is" if len(holders) == 1 else "are"
        return f"{', '.join(named)}{more} {verb} connected to it with a control program"


def _of(candidates: Sequence[ids.PodUid], known: dict[ids.PodUid, str]) -> str:
    """Name the pod of a process, by its UID where no claim of the daemon is known to be its."""
    if not candidates:
        return ""
    named = next((known[pod] for pod in candidates if pod in known), candidates[0])
    return f" (pod {named})"

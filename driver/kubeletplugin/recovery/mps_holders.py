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
class _Occurrence:
    """An occurrence: when it began, when it was last told, and of whom."""

    since_s: float
    reported_at_s: float = -math.inf
    reported: frozenset[mps_files.Holder] = frozenset()

    @property
    def is_reported(self) -> bool:
        return self.reported_at_s > -math.inf


class MpsHolders:
    """Of one thread. Each occurrence is told once, with who holds the daemon, and so is its end."""

    def __init__(
        self,
        teller: plugin_events.EventReporter,
        pods_of: ports.ProcessPods,
        known: claim_pods.ClaimPods,
        time: clock.Clock,
    ) -> None:
        self._reporter = teller
        self._process_pods = pods_of
        self._claim_pods = known
        self._clock = time
        self._occurrences: dict[str, _Occurrence] = {}

    def start_round(self, records: Iterable[checkpoint.Record], keys: Collection[str]) -> None:
        """A look begins: forget daemons without a claim."""
        self._claim_pods.start_round(records)
        self._occurrences = {key: held for key, held in self._occurrences.items() if key in keys}

    def check(self, key: str, status: mps_files.Status, refs: Sequence[ports.ClaimRef]) -> None:
        """Tell the daemon's claims what has changed since the last look."""
        if not status.occupied:
            self._report_end(key, refs)
            return
        now = self._clock.monotonic()
        held = self._occurrences.setdefault(key, _Occurrence(now))
        holders = frozenset(status.holders)
        news = not held.is_reported or (
            holders != held.reported and now - held.reported_at_s >= AGAIN_S
        )
        if now - held.since_s < STAYS_S or not news:
            return
        held.reported, held.reported_at_s = holders, now
        who = self._describe_holders(status.holders, refs)
        text = f"MPS daemon of {key} takes no command while {who}"
        for ref in refs:
            self._reporter.warn_claim(ref, reasons.Reason.MPS_CONTROL_HELD, text)

    def _report_end(self, key: str, refs: Sequence[ports.ClaimRef]) -> None:
        held = self._occurrences.pop(key, None)
        if held is None or not held.is_reported:
            return
        for ref in refs:
            text = f"MPS daemon of {key} takes commands again"
            self._reporter.notify_claim(ref, reasons.Reason.MPS_CONTROL_FREED, text)

    def _describe_holders(
        self, holders: Sequence[mps_files.Holder], refs: Sequence[ports.ClaimRef]
    ) -> str:
        """Say who holds a daemon of these claims, with their pods where those are known."""
        if not holders:
            return "a control program is connected to it, which is not seen"
        found = {holder: self._process_pods(holder.pid) for holder in holders[:_MOST]}
        self._claim_pods.resolve(refs, {pod for pods in found.values() for pod in pods})
        known = {
            pod: name for pods in self._claim_pods.pods(refs).values() for pod, name in pods.items()
        }
        named = (f"{holder.describe()}{_pod_text(pods, known)}" for holder, pods in found.items())
        more = f" and {len(holders) - _MOST} more" if len(holders) > _MOST else ""
        verb = "is" if len(holders) == 1 else "are"
        return f"{', '.join(named)}{more} {verb} connected to it with a control program"


def _pod_text(candidates: Sequence[ids.PodUid], known: dict[ids.PodUid, str]) -> str:
    """Name the pod of a process, by its UID where no claim of the daemon is known to be its."""
    if not candidates:
        return ""
    named = next((known[pod] for pod in candidates if pod in known), candidates[0])
    return f" (pod {named})"

"""Reports to an MPS daemon's claims the control programs that block its commands.

A daemon serves one control program at a time, and any tenant of it may bring one. A command takes a
moment; an idle shell blocks the daemon for as long as it is open.
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
"""A connection held longer than this is no single command."""
AGAIN_S: Final = 300.0
"""Interval of reports of the same occurrence, whatever its holders."""
_MOST = 5
"""Processes in a text: an event's note has 1024 bytes."""


@dataclass(slots=True)
class _Occurrence:
    """An occurrence: its start, its last report, and the holders reported."""

    since_s: float
    reported_at_s: float = -math.inf
    reported: frozenset[mps_files.Holder] = frozenset()

    @property
    def is_reported(self) -> bool:
        return self.reported_at_s > -math.inf


class MpsHolders:
    """Used by one thread. Reports each occurrence once, with its holders, and its end."""

    def __init__(
        self,
        reporter: plugin_events.EventReporter,
        process_pods: ports.ProcessPods,
        pods: claim_pods.ClaimPods,
        time: clock.Clock,
    ) -> None:
        self._reporter = reporter
        self._process_pods = process_pods
        self._claim_pods = pods
        self._clock = time
        self._occurrences: dict[str, _Occurrence] = {}

    def start_round(self, records: Iterable[checkpoint.Record], keys: Collection[str]) -> None:
        """Start a round: forget daemons without a claim."""
        self._claim_pods.start_round(records)
        self._occurrences = {
            key: occurrence for key, occurrence in self._occurrences.items() if key in keys
        }

    def check(self, key: str, status: mps_files.Status, refs: Sequence[ports.ClaimRef]) -> None:
        """Report to the daemon's claims what has changed since the last check."""
        if not status.occupied:
            self._report_end(key, refs)
            return
        now = self._clock.monotonic()
        occurrence = self._occurrences.setdefault(key, _Occurrence(now))
        holders = frozenset(status.holders)
        is_news = not occurrence.is_reported or (
            holders != occurrence.reported and now - occurrence.reported_at_s >= AGAIN_S
        )
        if now - occurrence.since_s < STAYS_S or not is_news:
            return
        occurrence.reported, occurrence.reported_at_s = holders, now
        holders_text = self._describe_holders(status.holders, refs)
        text = f"MPS daemon of {key} takes no command while {holders_text}"
        for ref in refs:
            self._reporter.warn_claim(ref, reasons.Reason.MPS_CONTROL_HELD, text)

    def _report_end(self, key: str, refs: Sequence[ports.ClaimRef]) -> None:
        occurrence = self._occurrences.pop(key, None)
        if occurrence is None or not occurrence.is_reported:
            return
        for ref in refs:
            text = f"MPS daemon of {key} takes commands again"
            self._reporter.notify_claim(ref, reasons.Reason.MPS_CONTROL_FREED, text)

    def _describe_holders(
        self, holders: Sequence[mps_files.Holder], refs: Sequence[ports.ClaimRef]
    ) -> str:
        """Return a text of the holders, with their pods if known."""
        if not holders:
            return "a control program is connected to it, which is not seen"
        candidates = {holder: self._process_pods(holder.pid) for holder in holders[:_MOST]}
        self._claim_pods.resolve(refs, {pod for pods in candidates.values() for pod in pods})
        names = {
            pod: name for pods in self._claim_pods.pods(refs).values() for pod, name in pods.items()
        }
        texts = (
            f"{holder.describe()}{_pod_text(pods, names)}" for holder, pods in candidates.items()
        )
        more = f" and {len(holders) - _MOST} more" if len(holders) > _MOST else ""
        verb = "is" if len(holders) == 1 else "are"
        return f"{', '.join(texts)}{more} {verb} connected to it with a control program"


def _pod_text(candidates: Sequence[ids.PodUid], names: dict[ids.PodUid, str]) -> str:
    """Name the pod of a process, by its UID if it is no known claim's."""
    if not candidates:
        return ""
    name = next((names[pod] for pod in candidates if pod in names), candidates[0])
    return f" (pod {name})"

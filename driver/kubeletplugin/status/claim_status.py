"""What the plugin says of claims in `status.devices`, written behind the kubelet's back (D19).

Saying it never waits: the latest word of a type counts, and one thread writes. The claim is read
first and changed only as it was read, so words never land on another claim of the name, or on
another allocation. What the devices do (`activity`) is told the same way. What cannot be written is
tried again, ever later; Prepare never hears of it.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from driver import clock, errors, ids, names, reasons
from driver.kube import backoff, workqueue
from driver.kubeletplugin import ports
from driver.kubeletplugin.usage import activity
from driver.resources.dra import claims, device_status

_log = structlog.get_logger(__name__)
MAX_PENDING: Final = 1024
"""Claims with something to write; the oldest is dropped first. A node runs 110 pods."""
_IDLE_S = 60.0
_STATUSES = {True: "True", False: "False", None: "Unknown"}
_OVER = (errors.NotFound, errors.BadInput)
"""The claim is gone, or cannot be read. Not Invalid: for a right that is lacking the server says so
too, and a claim that has lost its devices is found out by reading it."""


_Conditions = Mapping[str, ports.ConditionUpdate]
_Activities = Mapping[ports.DeviceKey, ports.ObservedActivity]


@dataclass(slots=True)
class _PendingStatus:
    """Of one claim, what is not written yet: by the condition's type, and by device."""

    ref: ports.ClaimRef
    conditions: _Conditions = field(default_factory=dict)
    activities: _Activities = field(default_factory=dict)


class ClaimStatusWriter:
    """Implements `ports.Conditions` and `ports.Activities`, for devices of `driver` in `pool`."""

    def __init__(
        self,
        driver: str,
        pool: str,
        status: ports.ClaimStatus,
        time: clock.Clock,
        jitter: backoff.Jitter,
    ) -> None:
        self._driver = driver
        self._pool = pool
        self._status = status
        self._clock = time
        self._queue: workqueue.WorkQueue[ids.ClaimUid] = workqueue.WorkQueue(time, jitter)
        self._lock = threading.Lock()
        self._pending: dict[ids.ClaimUid, _PendingStatus] = {}
        self._failing = False

    def set_condition(self, ref: ports.ClaimRef, word: ports.ConditionUpdate) -> None:
        """Have it said of every device that the claim has of us; the latest of a type counts."""
        with self._lock:
            said = self._pending.setdefault(ref.uid, _PendingStatus(ref))
            said.conditions = {**said.conditions, word.type: word}
        self._enqueue(ref)

    def set_activity(self, ref: ports.ClaimRef, seen: _Activities) -> None:
        """Have it said of these devices of the claim; the latest counts."""
        with self._lock:
            said = self._pending.setdefault(ref.uid, _PendingStatus(ref))
            said.activities = {**said.activities, **seen}
        self._enqueue(ref)

    def _enqueue(self, ref: ports.ClaimRef) -> None:
        with self._lock:
            while len(self._pending) > MAX_PENDING:
                dropped = next(iter(self._pending))
                del self._pending[dropped]
                _log.warning("too many conditions to write", dropped=dropped)
        self._queue.add(ref.uid)

    def interrupt(self) -> None:
        """Let `run`, told to stop, see it now."""
        self._queue.shut_down()

    def run(self, stop: threading.Event) -> None:
        """Write until told to stop; a thread's target."""
        while not stop.is_set():
            uid = self._queue.get(_IDLE_S)
            if uid is not None:
                self._process(uid)

    def write_due(self) -> None:
        """Write what is due now."""
        while (uid := self._queue.get(0.0)) is not None:
            self._process(uid)

    def _process(self, uid: ids.ClaimUid) -> None:
        try:
            self._sync(uid)
        finally:
            self._queue.done(uid)

    def _sync(self, uid: ids.ClaimUid) -> None:
        with self._lock:
            said = self._pending.get(uid)
            words, seen = (said.conditions, said.activities) if said else ({}, {})
        if said is None:
            self._queue.forget(uid)
            return
        try:
            self._write(said.ref, words, seen)
        except _OVER as e:
            _log.info("conditions not to be written", claim_uid=uid, error=str(e))
        except errors.ApiError as e:
            self._retry(uid, e)
            return
        self._clear_written(uid, words, seen)

    def _retry(self, uid: ids.ClaimUid, error: errors.ApiError) -> None:
        """Logged once until nothing waits, unless the claim had only changed meanwhile."""
        if not self._failing and not isinstance(error, errors.Conflict):
            self._failing = True
            _log.warning("conditions not written", claim_uid=uid, error=str(error))
        self._queue.retry(uid, error.retry_after_s or 0.0)

    def _clear_written(self, uid: ids.ClaimUid, words: _Conditions, seen: _Activities) -> None:
        """Forget what was written, and the claim with the last; what is newer stays."""
        self._queue.forget(uid)
        with self._lock:
            said = self._pending.get(uid)
            if said is None:
                return
            said.conditions = {
                k: one for k, one in said.conditions.items() if words.get(k) is not one
            }
            said.activities = {
                k: one for k, one in said.activities.items() if seen.get(k) is not one
            }
            if not said.conditions and not said.activities:
                del self._pending[uid]
            self._failing = self._failing and bool(self._pending)

    def _write(self, ref: ports.ClaimRef, words: _Conditions, seen: _Activities) -> None:
        claim = self._status.read(ref)
        if claim.uid != ref.uid or claim.allocation is None:
            return
        before = {one.device: one for one in claim.said}
        now = clock.rfc3339(self._clock.now())
        wanted = _desired_conditions(words.values())
        found: list[device_status.DeviceStatus] = []
        for device in self._allocated_devices(claim.allocation):
            old = before.get(device, device_status.DeviceStatus(device))
            ours = device_status.of_types(old, names.PLUGIN_CONDITIONS)
            timely = {kind: one for kind, one in wanted.items() if not _is_outdated(one, ours)}
            entry = device_status.changed(ours, timely, now)
            found.append(_with_activity(entry, seen.get(ports.DeviceKey(*device[2:]))))
        if any(not _is_unchanged(one, before) for one in found):
            self._status.apply(ref, claims.render_said(claim, found))

    def _allocated_devices(self, allocation: claims.Allocation) -> list[device_status.Device]:
        """What the claim has of us here, each once."""
        found = (
            device_status.Device(*result.device, result.share_id)
            for result in allocation.results
            if (result.device.driver, result.device.pool) == (self._driver, self._pool)
        )
        return list(dict.fromkeys(found))


def _with_activity(
    entry: device_status.DeviceStatus, seen: ports.ObservedActivity | None
) -> device_status.DeviceStatus:
    """The entry, with what is told of the device's work; what was told stays without news."""
    if seen is None:
        return entry
    ready = entry.condition(names.CONDITION_READY)
    prepared = ready.since if ready is not None and ready.status == _STATUSES[True] else ""
    return replace(entry, activity=activity.merge_status(entry.activity, seen, prepared))


def _is_outdated(wanted: device_status.Condition | None, ours: device_status.DeviceStatus) -> bool:
    """Whether a refusal is said to be cleared of what is prepared by now.

    In a rolling update the plugin that goes may still watch what the next one has prepared.
    """
    ready = ours.condition(names.CONDITION_READY)
    cleared = wanted is not None and wanted.reason == reasons.Reason.REFUSAL_CLEARED.value
    return cleared and ready is not None and ready.status == _STATUSES[True]


def _is_unchanged(
    entry: device_status.DeviceStatus,
    before: Mapping[device_status.Device, device_status.DeviceStatus],
) -> bool:
    old = before.get(entry.device)
    return old is not None and device_status.of_types(old, names.PLUGIN_CONDITIONS) == entry


def _desired_conditions(
    words: Iterable[ports.ConditionUpdate],
) -> dict[str, device_status.Condition | None]:
    """The conditions that words become; whoever says Ready says whether waiting would help."""
    found: dict[str, device_status.Condition | None] = {}
    for word in words:
        found[word.type] = _condition(word.type, _STATUSES[word.holds], word)
        if word.type == names.CONDITION_READY:
            stalled = _condition(names.CONDITION_STALLED, _STATUSES[True], word)
            found[names.CONDITION_STALLED] = stalled if word.permanent else None
    return found


def _condition(kind: str, status: str, word: ports.ConditionUpdate) -> device_status.Condition:
    return device_status.Condition(kind, status, word.reason.value, word.message)

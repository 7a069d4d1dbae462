"""Writes the plugin's entries of claims' `status.devices`, asynchronously (D19).

Updates never wait: the latest of a type counts, and one thread writes. The claim is read first and
changed only as it was read, so an update never lands on another claim of the name, or on another
allocation. Device activity is written the same way. A failed write is retried with back-off;
Prepare is not affected.
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
"""The claim is gone, or cannot be read. Not Invalid: the server returns it for a missing right too,
and a claim without devices is detected by reading it.
"""


_Conditions = Mapping[str, ports.ConditionUpdate]
_Activities = Mapping[ports.DeviceKey, ports.ObservedActivity]


@dataclass(slots=True)
class _PendingStatus:
    """A claim's unwritten status: conditions by type, activities by device."""

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

    def set_condition(self, ref: ports.ClaimRef, update: ports.ConditionUpdate) -> None:
        """Set a condition of all the claim's devices of ours; the latest of a type counts."""
        with self._lock:
            pending = self._pending.setdefault(ref.uid, _PendingStatus(ref))
            pending.conditions = {**pending.conditions, update.type: update}
        self._enqueue(ref)

    def set_activity(self, ref: ports.ClaimRef, activities: _Activities) -> None:
        """Set the activity of these devices of the claim; the latest counts."""
        with self._lock:
            pending = self._pending.setdefault(ref.uid, _PendingStatus(ref))
            pending.activities = {**pending.activities, **activities}
        self._enqueue(ref)

    def _enqueue(self, ref: ports.ClaimRef) -> None:
        with self._lock:
            while len(self._pending) > MAX_PENDING:
                dropped = next(iter(self._pending))
                del self._pending[dropped]
                _log.warning("too many conditions to write", dropped=dropped)
        self._queue.add(ref.uid)

    def interrupt(self) -> None:
        """Wake `run` after its stop was set."""
        self._queue.shut_down()

    def run(self, stop: threading.Event) -> None:
        """Write until stopped; a thread's target."""
        while not stop.is_set():
            uid = self._queue.get(_IDLE_S)
            if uid is not None:
                self._process(uid)

    def write_due(self) -> None:
        """Write the updates that are due now."""
        while (uid := self._queue.get(0.0)) is not None:
            self._process(uid)

    def _process(self, uid: ids.ClaimUid) -> None:
        try:
            self._sync(uid)
        finally:
            self._queue.done(uid)

    def _sync(self, uid: ids.ClaimUid) -> None:
        with self._lock:
            pending = self._pending.get(uid)
            conditions, activities = (
                (pending.conditions, pending.activities) if pending else ({}, {})
            )
        if pending is None:
            self._queue.forget(uid)
            return
        try:
            self._write(pending.ref, conditions, activities)
        except _OVER as e:
            _log.info("conditions not to be written", claim_uid=uid, error=str(e))
        except errors.ApiError as e:
            self._retry(uid, e)
            return
        self._clear_written(uid, conditions, activities)

    def _retry(self, uid: ids.ClaimUid, error: errors.ApiError) -> None:
        """Requeue; logged once per series of failures, except for a mere conflict."""
        if not self._failing and not isinstance(error, errors.Conflict):
            self._failing = True
            _log.warning("conditions not written", claim_uid=uid, error=str(error))
        self._queue.retry(uid, error.retry_after_s or 0.0)

    def _clear_written(
        self, uid: ids.ClaimUid, conditions: _Conditions, activities: _Activities
    ) -> None:
        """Drop written updates, and the claim with its last; newer updates stay."""
        self._queue.forget(uid)
        with self._lock:
            pending = self._pending.get(uid)
            if pending is None:
                return
            pending.conditions = {
                k: value
                for k, value in pending.conditions.items()
                if conditions.get(k) is not value
            }
            pending.activities = {
                k: value
                for k, value in pending.activities.items()
                if activities.get(k) is not value
            }
            if not pending.conditions and not pending.activities:
                del self._pending[uid]
            self._failing = self._failing and bool(self._pending)

    def _write(self, ref: ports.ClaimRef, conditions: _Conditions, activities: _Activities) -> None:
        claim = self._status.read(ref)
        if claim.uid != ref.uid or claim.allocation is None:
            return
        previous = {value.device: value for value in claim.device_statuses}
        now = clock.rfc3339(self._clock.now())
        desired = _desired_conditions(conditions.values())
        entries: list[device_status.DeviceStatus] = []
        for device in self._allocated_devices(claim.allocation):
            old = previous.get(device, device_status.DeviceStatus(device))
            own_entry = device_status.filter_types(old, names.PLUGIN_CONDITIONS)
            timely = {
                kind: value for kind, value in desired.items() if not _is_outdated(value, own_entry)
            }
            entry = device_status.merge_conditions(own_entry, timely, now)
            entries.append(_with_activity(entry, activities.get(ports.DeviceKey(*device[2:]))))
        if any(not _is_unchanged(value, previous) for value in entries):
            self._status.apply(ref, claims.render_device_status(claim, entries))

    def _allocated_devices(self, allocation: claims.Allocation) -> list[device_status.Device]:
        """Return the claim's devices of ours in this pool, each once."""
        devices = (
            device_status.Device(*result.device, result.share_id)
            for result in allocation.results
            if (result.device.driver, result.device.pool) == (self._driver, self._pool)
        )
        return list(dict.fromkeys(devices))


def _with_activity(
    entry: device_status.DeviceStatus, observed: ports.ObservedActivity | None
) -> device_status.DeviceStatus:
    """Return the entry with the observed activity; without one it is unchanged."""
    if observed is None:
        return entry
    ready = entry.condition(names.CONDITION_READY)
    prepared = ready.since if ready is not None and ready.status == _STATUSES[True] else ""
    return replace(entry, activity=activity.merge_status(entry.activity, observed, prepared))


def _is_outdated(
    desired: device_status.Condition | None, entry: device_status.DeviceStatus
) -> bool:
    """Return whether a clearing of a refusal comes after the claim was prepared.

    In a rolling update the old plugin may still watch claims that the new one has prepared.
    """
    ready = entry.condition(names.CONDITION_READY)
    cleared = desired is not None and desired.reason == reasons.Reason.REFUSAL_CLEARED.value
    return cleared and ready is not None and ready.status == _STATUSES[True]


def _is_unchanged(
    entry: device_status.DeviceStatus,
    previous: Mapping[device_status.Device, device_status.DeviceStatus],
) -> bool:
    old = previous.get(entry.device)
    return old is not None and device_status.filter_types(old, names.PLUGIN_CONDITIONS) == entry


def _desired_conditions(
    updates: Iterable[ports.ConditionUpdate],
) -> dict[str, device_status.Condition | None]:
    """Return the conditions to write; Ready also sets Stalled: whether waiting helps."""
    conditions: dict[str, device_status.Condition | None] = {}
    for update in updates:
        conditions[update.type] = _condition(update.type, _STATUSES[update.holds], update)
        if update.type == names.CONDITION_READY:
            stalled = _condition(names.CONDITION_STALLED, _STATUSES[True], update)
            conditions[names.CONDITION_STALLED] = stalled if update.permanent else None
    return conditions


def _condition(kind: str, status: str, update: ports.ConditionUpdate) -> device_status.Condition:
    return device_status.Condition(kind, status, update.reason.value, update.message)

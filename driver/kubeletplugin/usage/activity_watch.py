"""Tells of each claim's devices when they were last at work, how much, and their largest memory.

Of a GPU that a claim has alone, all that runs on it is the claim's; of one that is shared, what the
processes of its pods do. MIG devices are not told of: NVML samples no processes while MIG is on. On
doubt a device counts as at work: who is told to be idle may be evicted. What the last look found,
of MIG devices their memory too, is kept for the metrics.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from driver import clock, errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.collectors import claims, device_usage
from driver.kubeletplugin.records import checkpoint
from driver.kubeletplugin.usage import activity, claim_pods, usage

_log = structlog.get_logger(__name__)
_WHOLE = 100
_Key = tuple[ids.ClaimUid, ports.DeviceKey]


@dataclass(frozen=True, slots=True)
class Node:
    """What is looked at. `records` raises NodeFault."""

    records: Callable[[], tuple[checkpoint.Record, ...]]
    users: ports.Users
    workers: ports.Workers
    pods_of: ports.PodsOf
    reader: ports.ClaimReader
    meter: ports.Meter


@dataclass(frozen=True, slots=True)
class _Device:
    """A device of a claim on a GPU without MIG."""

    claim: ports.ClaimRef
    key: ports.DeviceKey
    alone: bool

    @property
    def of(self) -> _Key:
        return self.claim.uid, self.key


@dataclass(frozen=True, slots=True)
class _Found:
    """What a look found of one claim on a GPU; `percent` as in `ports.Seen`."""

    percent: int | None
    used_bytes: int


class ActivityWatch:
    """Of one thread."""

    def __init__(self, node: Node, tell: ports.Activities, time: clock.Clock) -> None:
        self._node = node
        self._tell = tell
        self._clock = time
        self._consumers = claim_pods.Consumers(node.reader)
        self._stamps: dict[ids.GpuUuid, int] = {}
        self._courses: dict[_Key, activity.Course] = {}
        self._told: dict[_Key, tuple[ports.Seen, float]] = {}
        self._before: frozenset[ids.ClaimUid] | None = None
        self._readings = claims.Readings()

    def readings(self) -> claims.Readings:
        """What the last look found; from any thread."""
        return self._readings

    def look(self) -> None:
        """Look at every device of a claim, and tell what is worth it. Raises NodeFault."""
        prepared = checkpoint.State.COMPLETED
        records = [one for one in self._node.records() if one.state is prepared]
        self._consumers.begin(records)
        on = _devices(records)
        self._forget({one.of for devices in on.values() for one in devices})
        found: dict[claims.Use, claims.Reading] = {}
        for gpu, devices in on.items():
            try:
                found |= self._look_at(gpu, devices)
            except errors.DeviceFault as e:
                _log.warning("what a GPU does is not known", gpu=gpu, error=str(e))
        self._read(records, found)
        self._before = frozenset(one.uid for one in records)
        for record in records:
            self._say(record.claim)

    def _forget(self, there: set[_Key]) -> None:
        self._courses = {key: one for key, one in self._courses.items() if key in there}
        self._told = {key: one for key, one in self._told.items() if key in there}

    def _read(
        self, records: Sequence[checkpoint.Record], found: dict[claims.Use, claims.Reading]
    ) -> None:
        """Keep what was found, with what only the meter tells."""
        watts: dict[ids.GpuUuid, float | None] = {}
        for one in device_usage.of_records(records, {}):
            try:
                if one.gpu not in watts:
                    watts[one.gpu] = None
                    watts[one.gpu] = self._node.meter.watts(one.gpu)
                if one.mig_uuid:
                    used = self._node.meter.used_bytes(ids.MigUuid(one.mig_uuid))
                    found[one.claim.uid, one.key.device] = claims.Reading(used=used)
            except errors.DeviceFault as e:
                _log.warning("a meter of a GPU not read", gpu=one.gpu, error=str(e))
        known = {gpu: one for gpu, one in watts.items() if one is not None}
        self._readings = claims.Readings(found, known)

    def _look_at(
        self, gpu: ids.GpuUuid, devices: Sequence[_Device]
    ) -> Mapping[claims.Use, claims.Reading]:
        alone = all(one.alone for one in devices)
        samples = self._node.workers.since(gpu, self._stamps.get(gpu, 0))
        for one in samples or ():
            self._stamps[gpu] = max(self._stamps.get(gpu, 0), one.stamp_us)
        found = self._whole(gpu, samples) if alone else None
        if not alone and samples is not None:
            shares = self._shares(gpu, devices, samples)
        else:
            shares = {one.claim.uid: found for one in devices if found is not None}
        seen = [one for one in devices if one.claim.uid in shares]
        for device in seen:
            self._take(device, shares[device.claim.uid])
        return {(one.claim.uid, one.key.device): _reading(shares[one.claim.uid]) for one in seen}

    def _whole(self, gpu: ids.GpuUuid, samples: Sequence[ports.Sample] | None) -> _Found | None:
        """Everything on the GPU."""
        if samples is None:
            percent = self._node.workers.percent(gpu)
            if percent is None:
                return None
        else:
            percent = min(100, sum(one.percent for one in samples))
        return _Found(percent, sum(one.used_bytes or 0 for one in self._node.users.of(gpu)))

    def _shares(
        self, gpu: ids.GpuUuid, devices: Sequence[_Device], samples: Sequence[ports.Sample]
    ) -> Mapping[ids.ClaimUid, _Found]:
        """What each claim's pods do; none where it is not known whose pods they are."""
        processes = self._node.users.of(gpu)
        pids = {one.pid for one in samples} | {one.pid for one in processes}
        candidates = {pid: self._node.pods_of(pid) for pid in pids}
        claims = list(dict.fromkeys(one.claim for one in devices))
        if not self._consumers.settle(
            claims, {pod for pods in candidates.values() for pod in pods}
        ):
            return {}
        pods = self._consumers.pods(claims)
        known = {pod for theirs in pods.values() for pod in theirs}
        owners = {pid: usage.owner(found, known) for pid, found in candidates.items()}
        stray = any(owners[one.pid] is None for one in samples)
        found: dict[ids.ClaimUid, _Found] = {}
        for uid, theirs in pods.items():
            percent = min(100, sum(one.percent for one in samples if owners[one.pid] in theirs))
            used = sum(one.used_bytes or 0 for one in processes if owners[one.pid] in theirs)
            found[uid] = _Found(None if stray and not percent else percent, used)
        return found

    def _take(self, device: _Device, found: _Found) -> None:
        now = clock.rfc3339(self._clock.now())
        fresh = self._before is not None and device.claim.uid not in self._before
        before = self._courses.get(device.of) or activity.begun(now, fresh=fresh)
        look = activity.Look(found.percent, found.used_bytes, self._clock.monotonic(), now)
        self._courses[device.of] = activity.after(before, look)

    def _say(self, ref: ports.ClaimRef) -> None:
        """All devices of a claim, when one of them has news and the last word is old enough."""
        now_s = self._clock.monotonic()
        mine = {key: activity.seen(one) for key, one in self._courses.items() if key[0] == ref.uid}
        news = False
        for key, seen in mine.items():
            told, at_s = self._told.get(key, (None, -activity.EVERY_S))
            since_s = now_s - at_s
            if told is not None and since_s < activity.EVERY_S:
                return
            news = news or activity.is_news(told, seen, since_s)
        if news:
            self._told.update((key, (seen, now_s)) for key, seen in mine.items())
            self._tell.tell(ref, {key: seen for (_, key), seen in mine.items()})


def _reading(found: _Found) -> claims.Reading:
    busy = None if found.percent is None else found.percent / _WHOLE
    return claims.Reading(busy, found.used_bytes)


def _devices(
    records: Sequence[checkpoint.Record],
) -> Mapping[ids.GpuUuid, Sequence[_Device]]:
    """The devices of claims by GPU, without MIG devices and what administrators look on with."""
    found: dict[ids.GpuUuid, list[_Device]] = {}
    for record in records:
        for one in record.devices:
            if not one.admin_access and one.edits.instance is None:
                key = ports.DeviceKey(one.device, one.share_id)
                found.setdefault(one.gpu, []).append(_Device(record.claim, key, one.whole))
    return found

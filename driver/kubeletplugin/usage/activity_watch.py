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
class ActivitySources:
    """What is looked at. `records` raises NodeFault."""

    records: Callable[[], tuple[checkpoint.Record, ...]]
    processes: ports.ProcessLister
    sampler: ports.UtilizationSampler
    process_pods: ports.ProcessPods
    reader: ports.ClaimReader
    meter: ports.Meter


@dataclass(frozen=True, slots=True)
class _Device:
    """A device of a claim on a GPU without MIG."""

    claim: ports.ClaimRef
    key: ports.DeviceKey
    alone: bool

    @property
    def use_key(self) -> _Key:
        return self.claim.uid, self.key


@dataclass(frozen=True, slots=True)
class _GpuUse:
    """What a look found of one claim on a GPU; `percent` as in `ports.Seen`."""

    percent: int | None
    used_bytes: int


class ActivityWatch:
    """Of one thread."""

    def __init__(self, node: ActivitySources, tell: ports.Activities, time: clock.Clock) -> None:
        self._sources = node
        self._sink = tell
        self._clock = time
        self._claim_pods = claim_pods.ClaimPods(node.reader)
        self._stamps: dict[ids.GpuUuid, int] = {}
        self._histories: dict[_Key, activity.ActivityHistory] = {}
        self._reported: dict[_Key, tuple[ports.ObservedActivity, float]] = {}
        self._previous_uids: frozenset[ids.ClaimUid] | None = None
        self._readings = claims.Readings()

    def readings(self) -> claims.Readings:
        """What the last look found; from any thread."""
        return self._readings

    def observe(self) -> None:
        """Look at every device of a claim, and tell what is worth it. Raises NodeFault."""
        prepared = checkpoint.State.COMPLETED
        records = [one for one in self._sources.records() if one.state is prepared]
        self._claim_pods.start_round(records)
        on = _devices_by_gpu(records)
        self._prune({one.use_key for devices in on.values() for one in devices})
        found: dict[claims.UseKey, claims.Reading] = {}
        for gpu, devices in on.items():
            try:
                found |= self._observe_gpu(gpu, devices)
            except errors.DeviceFault as e:
                _log.warning("what a GPU does is not known", gpu=gpu, error=str(e))
        self._update_readings(records, found)
        self._previous_uids = frozenset(one.uid for one in records)
        for record in records:
            self._report(record.claim)

    def _prune(self, there: set[_Key]) -> None:
        self._histories = {key: one for key, one in self._histories.items() if key in there}
        self._reported = {key: one for key, one in self._reported.items() if key in there}

    def _update_readings(
        self, records: Sequence[checkpoint.Record], found: dict[claims.UseKey, claims.Reading]
    ) -> None:
        """Keep what was found, with what only the meter tells."""
        watts: dict[ids.GpuUuid, float | None] = {}
        for one in device_usage.device_uses(records, {}):
            try:
                if one.gpu not in watts:
                    watts[one.gpu] = None
                    watts[one.gpu] = self._sources.meter.power_watts(one.gpu)
                if one.mig_uuid:
                    used = self._sources.meter.used_bytes(ids.MigUuid(one.mig_uuid))
                    found[one.claim.uid, one.key.device] = claims.Reading(used=used)
            except errors.DeviceFault as e:
                _log.warning("a meter of a GPU not read", gpu=one.gpu, error=str(e))
        known = {gpu: one for gpu, one in watts.items() if one is not None}
        self._readings = claims.Readings(found, known)

    def _observe_gpu(
        self, gpu: ids.GpuUuid, devices: Sequence[_Device]
    ) -> Mapping[claims.UseKey, claims.Reading]:
        alone = all(one.alone for one in devices)
        samples = self._sources.sampler.samples_since(gpu, self._stamps.get(gpu, 0))
        for one in samples or ():
            self._stamps[gpu] = max(self._stamps.get(gpu, 0), one.stamp_us)
        found = self._whole_use(gpu, samples) if alone else None
        if not alone and samples is not None:
            shares = self._share_uses(gpu, devices, samples)
        else:
            shares = {one.claim.uid: found for one in devices if found is not None}
        seen = [one for one in devices if one.claim.uid in shares]
        for device in seen:
            self._record(device, shares[device.claim.uid])
        return {(one.claim.uid, one.key.device): _reading(shares[one.claim.uid]) for one in seen}

    def _whole_use(
        self, gpu: ids.GpuUuid, samples: Sequence[ports.Sample] | None
    ) -> _GpuUse | None:
        """Everything on the GPU."""
        if samples is None:
            percent = self._sources.sampler.utilization_percent(gpu)
            if percent is None:
                return None
        else:
            percent = min(100, sum(one.percent for one in samples))
        return _GpuUse(
            percent, sum(one.used_bytes or 0 for one in self._sources.processes.list_processes(gpu))
        )

    def _share_uses(
        self, gpu: ids.GpuUuid, devices: Sequence[_Device], samples: Sequence[ports.Sample]
    ) -> Mapping[ids.ClaimUid, _GpuUse]:
        """What each claim's pods do; none where it is not known whose pods they are."""
        processes = self._sources.processes.list_processes(gpu)
        pids = {one.pid for one in samples} | {one.pid for one in processes}
        candidates = {pid: self._sources.process_pods(pid) for pid in pids}
        claims = list(dict.fromkeys(one.claim for one in devices))
        if not self._claim_pods.resolve(
            claims, {pod for pods in candidates.values() for pod in pods}
        ):
            return {}
        pods = self._claim_pods.pods(claims)
        known = {pod for theirs in pods.values() for pod in theirs}
        owners = {pid: usage.owning_pod(found, known) for pid, found in candidates.items()}
        stray = any(owners[one.pid] is None for one in samples)
        found: dict[ids.ClaimUid, _GpuUse] = {}
        for uid, theirs in pods.items():
            percent = min(100, sum(one.percent for one in samples if owners[one.pid] in theirs))
            used = sum(one.used_bytes or 0 for one in processes if owners[one.pid] in theirs)
            found[uid] = _GpuUse(None if stray and not percent else percent, used)
        return found

    def _record(self, device: _Device, found: _GpuUse) -> None:
        now = clock.rfc3339(self._clock.now())
        fresh = self._previous_uids is not None and device.claim.uid not in self._previous_uids
        before = self._histories.get(device.use_key) or activity.new_history(now, fresh=fresh)
        look = activity.Observation(found.percent, found.used_bytes, self._clock.monotonic(), now)
        self._histories[device.use_key] = activity.add_observation(before, look)

    def _report(self, ref: ports.ClaimRef) -> None:
        """All devices of a claim, when one of them has news and the last word is old enough."""
        now_s = self._clock.monotonic()
        mine = {
            key: activity.summarize(one)
            for key, one in self._histories.items()
            if key[0] == ref.uid
        }
        news = False
        for key, seen in mine.items():
            told, at_s = self._reported.get(key, (None, -activity.EVERY_S))
            since_s = now_s - at_s
            if told is not None and since_s < activity.EVERY_S:
                return
            news = news or activity.should_report(told, seen, since_s)
        if news:
            self._reported.update((key, (seen, now_s)) for key, seen in mine.items())
            self._sink.set_activity(ref, {key: seen for (_, key), seen in mine.items()})


def _reading(found: _GpuUse) -> claims.Reading:
    busy = None if found.percent is None else found.percent / _WHOLE
    return claims.Reading(busy, found.used_bytes)


def _devices_by_gpu(
    records: Sequence[checkpoint.Record],
) -> Mapping[ids.GpuUuid, Sequence[_Device]]:
    """The devices of claims by GPU, without MIG devices and what administrators look on with."""
    found: dict[ids.GpuUuid, list[_Device]] = {}
    for record in records:
        for one in record.devices:
            if not one.admin_access and one.edits.instance is None:
                key = ports.DeviceKey(one.device, one.share_id)
                found.setdefault(one.gpu, []).append(_Device(record.claim, key, one.is_whole))
    return found

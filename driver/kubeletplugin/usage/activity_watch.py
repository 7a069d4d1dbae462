"""Reports each claim's device activity: last busy, utilization, peak memory.

On an unshared GPU, everything that runs is the claim's; on a shared one, what its pods' processes
do. MIG devices are not reported: NVML samples no processes while MIG is on. In doubt a device
counts as busy, as pods of idle devices may be evicted. The last readings, including MIG devices'
memory, are kept for the metrics.
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
    """Inputs of the watch. `records` raises NodeFault."""

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
    """Use of a GPU by one claim; `percent` as in `ports.ObservedActivity`."""

    percent: int | None
    used_bytes: int


class ActivityWatch:
    """Used by one thread."""

    def __init__(self, sources: ActivitySources, sink: ports.Activities, time: clock.Clock) -> None:
        self._sources = sources
        self._sink = sink
        self._clock = time
        self._claim_pods = claim_pods.ClaimPods(sources.reader)
        self._stamps: dict[ids.GpuUuid, int] = {}
        self._histories: dict[_Key, activity.ActivityHistory] = {}
        self._reported: dict[_Key, tuple[ports.ObservedActivity, float]] = {}
        self._previous_uids: frozenset[ids.ClaimUid] | None = None
        self._readings = claims.Readings()

    def readings(self) -> claims.Readings:
        """Return the last readings; from any thread."""
        return self._readings

    def observe(self) -> None:
        """Observe every device of a claim, and report changes. Raises NodeFault."""
        completed = checkpoint.State.COMPLETED
        records = [device for device in self._sources.records() if device.state is completed]
        self._claim_pods.start_round(records)
        by_gpu = _devices_by_gpu(records)
        self._prune({device.use_key for devices in by_gpu.values() for device in devices})
        readings: dict[claims.UseKey, claims.Reading] = {}
        for gpu, devices in by_gpu.items():
            try:
                readings |= self._observe_gpu(gpu, devices)
            except errors.DeviceFault as e:
                _log.warning("what a GPU does is not known", gpu=gpu, error=str(e))
        self._update_readings(records, readings)
        self._previous_uids = frozenset(device.uid for device in records)
        for record in records:
            self._report(record.claim)

    def _prune(self, present: set[_Key]) -> None:
        self._histories = {key: value for key, value in self._histories.items() if key in present}
        self._reported = {key: value for key, value in self._reported.items() if key in present}

    def _update_readings(
        self, records: Sequence[checkpoint.Record], readings: dict[claims.UseKey, claims.Reading]
    ) -> None:
        """Store the readings, with power and MIG memory from the meter."""
        watts: dict[ids.GpuUuid, float | None] = {}
        for use in device_usage.device_uses(records, {}):
            try:
                if use.gpu not in watts:
                    watts[use.gpu] = None
                    watts[use.gpu] = self._sources.meter.power_watts(use.gpu)
                if use.mig_uuid:
                    used = self._sources.meter.used_bytes(ids.MigUuid(use.mig_uuid))
                    readings[use.claim.uid, use.key.device] = claims.Reading(used=used)
            except errors.DeviceFault as e:
                _log.warning("a meter of a GPU not read", gpu=use.gpu, error=str(e))
        measured = {gpu: use for gpu, use in watts.items() if use is not None}
        self._readings = claims.Readings(readings, measured)

    def _observe_gpu(
        self, gpu: ids.GpuUuid, devices: Sequence[_Device]
    ) -> Mapping[claims.UseKey, claims.Reading]:
        is_unshared = all(item.alone for item in devices)
        samples = self._sources.sampler.samples_since(gpu, self._stamps.get(gpu, 0))
        for item in samples or ():
            self._stamps[gpu] = max(self._stamps.get(gpu, 0), item.stamp_us)
        whole = self._whole_use(gpu, samples) if is_unshared else None
        if not is_unshared and samples is not None:
            shares = self._share_uses(gpu, devices, samples)
        else:
            shares = {item.claim.uid: whole for item in devices if whole is not None}
        observed = [item for item in devices if item.claim.uid in shares]
        for device in observed:
            self._record(device, shares[device.claim.uid])
        return {
            (item.claim.uid, item.key.device): _reading(shares[item.claim.uid]) for item in observed
        }

    def _whole_use(
        self, gpu: ids.GpuUuid, samples: Sequence[ports.Sample] | None
    ) -> _GpuUse | None:
        """Return the use of everything on the GPU."""
        if samples is None:
            percent = self._sources.sampler.utilization_percent(gpu)
            if percent is None:
                return None
        else:
            percent = min(100, sum(item.percent for item in samples))
        return _GpuUse(
            percent,
            sum(item.used_bytes or 0 for item in self._sources.processes.list_processes(gpu)),
        )

    def _share_uses(
        self, gpu: ids.GpuUuid, devices: Sequence[_Device], samples: Sequence[ports.Sample]
    ) -> Mapping[ids.ClaimUid, _GpuUse]:
        """Return the use of each claim's pods; empty if the pods are not known."""
        processes = self._sources.processes.list_processes(gpu)
        pids = {item.pid for item in samples} | {item.pid for item in processes}
        candidates = {pid: self._sources.process_pods(pid) for pid in pids}
        claims = list(dict.fromkeys(item.claim for item in devices))
        if not self._claim_pods.resolve(
            claims, {pod for pods in candidates.values() for pod in pods}
        ):
            return {}
        pods = self._claim_pods.pods(claims)
        known_pods = {pod for own_pods in pods.values() for pod in own_pods}
        owners = {pid: usage.owning_pod(result, known_pods) for pid, result in candidates.items()}
        stray = any(owners[item.pid] is None for item in samples)
        result: dict[ids.ClaimUid, _GpuUse] = {}
        for uid, own_pods in pods.items():
            percent = min(
                100, sum(item.percent for item in samples if owners[item.pid] in own_pods)
            )
            used = sum(item.used_bytes or 0 for item in processes if owners[item.pid] in own_pods)
            result[uid] = _GpuUse(None if stray and not percent else percent, used)
        return result

    def _record(self, device: _Device, use: _GpuUse) -> None:
        now = clock.rfc3339(self._clock.now())
        fresh = self._previous_uids is not None and device.claim.uid not in self._previous_uids
        history = self._histories.get(device.use_key) or activity.new_history(now, fresh=fresh)
        observation = activity.Observation(
            use.percent, use.used_bytes, self._clock.monotonic(), now
        )
        self._histories[device.use_key] = activity.add_observation(history, observation)

    def _report(self, ref: ports.ClaimRef) -> None:
        """Report all devices of a claim, if one has changed and the last report is old enough."""
        now_s = self._clock.monotonic()
        activities = {
            key: activity.summarize(history)
            for key, history in self._histories.items()
            if key[0] == ref.uid
        }
        changed = False
        for key, observed in activities.items():
            reported, at_s = self._reported.get(key, (None, -activity.EVERY_S))
            since_s = now_s - at_s
            if reported is not None and since_s < activity.EVERY_S:
                return
            changed = changed or activity.should_report(reported, observed, since_s)
        if changed:
            self._reported.update((key, (observed, now_s)) for key, observed in activities.items())
            self._sink.set_activity(
                ref, {key: observed for (_, key), observed in activities.items()}
            )


def _reading(use: _GpuUse) -> claims.Reading:
    busy = None if use.percent is None else use.percent / _WHOLE
    return claims.Reading(busy, use.used_bytes)


def _devices_by_gpu(
    records: Sequence[checkpoint.Record],
) -> Mapping[ids.GpuUuid, Sequence[_Device]]:
    """Return claims' devices by GPU, without MIG devices and admin access."""
    by_gpu: dict[ids.GpuUuid, list[_Device]] = {}
    for record in records:
        for device in record.devices:
            if not device.admin_access and device.edits.instance is None:
                key = ports.DeviceKey(device.device, device.share_id)
                by_gpu.setdefault(device.gpu, []).append(
                    _Device(record.claim, key, device.is_whole)
                )
    return by_gpu

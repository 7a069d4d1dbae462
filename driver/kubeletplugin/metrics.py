"""The plugin's metrics: base units, closed label sets, every series present from the start."""

from collections.abc import Sequence
from typing import Final

import prometheus_client as prometheus

from driver import reasons
from driver.devices import xids
from driver.resources.dra import slices

CALLS: Final = ("prepare", "unprepare")
RESULTS: Final = ("done", "refused", "failed", "cancelled")
RESETS: Final = ("done", "failed")
WRITES: Final = ("create", "update", "delete")
REASONS: Final = (
    reasons.Reason.ADMIN_ACCESS_REQUIRED,
    reasons.Reason.CLAIM_ALREADY_UNPREPARED,
    reasons.Reason.CLAIM_NOT_ALLOCATED,
    reasons.Reason.CLAIM_REPLACED,
    reasons.Reason.CONFIG_INVALID,
    reasons.Reason.CROSS_NAMESPACE_SHARING,
    reasons.Reason.DEVICE_OVERLAP,
    reasons.Reason.DEVICE_UNKNOWN,
    reasons.Reason.DRIVER_NOT_READY,
    reasons.Reason.ISOLATION_TOO_WEAK,
    reasons.Reason.PREPARE_FAILED,
    reasons.Reason.SHARING_CONFLICT,
    reasons.Reason.STILL_RUNNING,
    reasons.Reason.UNPREPARE_FAILED,
)
"""Reasons why a claim is not prepared, or not unprepared."""
OTHER: Final = "Other"
ALLOCATORS: Final = ("controller", "scheduler")
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0)


class Metrics:
    """All metrics, on a separate registry."""

    def __init__(self, registry: prometheus.CollectorRegistry) -> None:
        self._seconds = {call: _call_histograms(call, registry) for call in CALLS}
        running = prometheus.Gauge(
            "dra_gpu_plugin_claims_running",
            "Claims that are being processed or wait for a thread.",
            ["call"],
            registry=registry,
        )
        self.running = {call: running.labels(call=call) for call in CALLS}
        self.registered = prometheus.Gauge(
            "dra_gpu_plugin_registered",
            "1 while the plugin is registered with the kubelet.",
            registry=registry,
        )
        self.registrations_refused = prometheus.Counter(
            "dra_gpu_plugin_registrations_refused",
            "Registrations that the kubelet rejected.",
            registry=registry,
        )
        self.slices = prometheus.Gauge(
            "dra_gpu_plugin_slices",
            "Existing ResourceSlices of this node.",
            registry=registry,
        )
        self._devices = _devices_gauge(registry)
        self._errors = _error_counters(registry)
        self.failing_daemons = _failing_gauge(registry)
        writes = prometheus.Counter(
            "dra_gpu_plugin_slice_writes",
            "Successful writes of ResourceSlices.",
            ["verb"],
            registry=registry,
        )
        self.writes = {verb: writes.labels(verb=verb) for verb in WRITES}
        self.publish_failures = prometheus.Counter(
            "dra_gpu_plugin_publish_failures",
            "Failed attempts to publish ResourceSlices.",
            registry=registry,
        )

        self._xids = prometheus.Counter(
            "dra_gpu_plugin_xids",
            "Xids reported by the GPU driver; `other` is a code that is not in the table.",
            ["class", "xid"],
            registry=registry,
        )
        for row in xids.TABLE.values():
            self._xids.labels(row.xid_class.value, str(row.code))
        self.unhealthy_gpus = prometheus.Gauge(
            "dra_gpu_plugin_unhealthy_gpus",
            "GPUs with a health taint on the whole GPU or on a MIG instance.",
            registry=registry,
        )
        self.quarantined_gpus = _quarantined_gauge(registry)
        self.handing_over = _handover_gauge(registry)
        self.claims_over_share, self.share_overruns = _overuse_metrics(registry)
        self.resets = _reset_counters(registry)

    def count_xid(self, row: xids.Xid) -> None:
        """Count an Xid reported by the driver."""
        code = str(row.code) if row.code in xids.TABLE else "other"
        self._xids.labels(row.xid_class.value, code).inc()

    def set_devices(self, devices: Sequence[slices.Device]) -> None:
        """Set the number of devices to publish."""
        for allocator, gauge in self._devices.items():
            is_ours = allocator == "controller"
            gauge.set(sum(device.is_tainted_for("controller") is is_ours for device in devices))

    def count_failure(self, call: str, reason: reasons.Reason) -> None:
        """Count a refused claim, or a failed call."""
        label = reason.value if reason in REASONS else OTHER
        self._errors[call, label].inc()

    def observe_duration(self, call: str, result: str, seconds: float) -> None:
        """Observe the end of a claim's call; `call` and `result` are of the closed sets."""
        self._seconds[call][result].observe(seconds)


def _devices_gauge(registry: prometheus.CollectorRegistry) -> dict[str, prometheus.Gauge]:
    gauge = prometheus.Gauge(
        "dra_gpu_plugin_devices",
        "Devices to publish on this node, by allocator; monitor devices, for admin access "
        "only, count as kube-scheduler's.",
        ["allocator"],
        registry=registry,
    )
    return {allocator: gauge.labels(allocator=allocator) for allocator in ALLOCATORS}


def _failing_gauge(registry: prometheus.CollectorRegistry) -> prometheus.Gauge:
    return prometheus.Gauge(
        "dra_gpu_plugin_mps_daemons_failing",
        "MPS daemons that should serve a claim and do not, as reported by their supervisor.",
        registry=registry,
    )


def _error_counters(
    registry: prometheus.CollectorRegistry,
) -> dict[tuple[str, str], prometheus.Counter]:
    counter = prometheus.Counter(
        "dra_gpu_plugin_claim_errors",
        "Claims that failed to be prepared or unprepared, by reason.",
        ["call", "reason"],
        registry=registry,
    )
    return {
        (call, reason): counter.labels(call=call, reason=reason)
        for call in CALLS
        for reason in (*(item.value for item in REASONS), OTHER)
    }


def _quarantined_gauge(registry: prometheus.CollectorRegistry) -> prometheus.Gauge:
    return prometheus.Gauge(
        "dra_gpu_plugin_quarantined_gpus",
        "GPUs that failed repeatedly and are excluded until an operator clears their quarantine.",
        registry=registry,
    )


def _handover_gauge(registry: prometheus.CollectorRegistry) -> prometheus.Gauge:
    return prometheus.Gauge(
        "dra_gpu_plugin_handing_over",
        "1 while the node's devices are handed over to the other allocator.",
        registry=registry,
    )


def _overuse_metrics(
    registry: prometheus.CollectorRegistry,
) -> tuple[prometheus.Gauge, prometheus.Counter]:
    claims = prometheus.Gauge(
        "dra_gpu_plugin_claims_over_share",
        "Claims whose processes together use more GPU memory than allocated.",
        registry=registry,
    )
    overruns = prometheus.Counter(
        "dra_gpu_plugin_share_overruns",
        "Times a claim exceeded its share of a GPU; once per episode.",
        registry=registry,
    )
    return claims, overruns


def _call_histograms(
    call: str, registry: prometheus.CollectorRegistry
) -> dict[str, prometheus.Histogram]:
    histogram = prometheus.Histogram(
        f"dra_gpu_plugin_{call}_seconds",
        f"Time to {call} one claim, including the wait for a thread.",
        ["result"],
        buckets=_BUCKETS,
        registry=registry,
    )
    return {result: histogram.labels(result=result) for result in RESULTS}


def _reset_counters(registry: prometheus.CollectorRegistry) -> dict[str, prometheus.Counter]:
    counter = prometheus.Counter(
        "dra_gpu_plugin_gpu_resets",
        "Resets of GPUs that required one (--reset-gpus).",
        ["result"],
        registry=registry,
    )
    return {result: counter.labels(result=result) for result in RESETS}

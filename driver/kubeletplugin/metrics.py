"""The plugin's metrics. Base units, closed label sets, every series there from the start."""

from typing import Final

import prometheus_client as prometheus

from driver.devices import xids

CALLS: Final = ("prepare", "unprepare")
RESULTS: Final = ("done", "refused", "failed", "cancelled")
RESETS: Final = ("done", "failed")
WRITES: Final = ("create", "update", "delete")
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0)


class Metrics:
    """All of them, on a registry of their own."""

    def __init__(self, registry: prometheus.CollectorRegistry) -> None:
        self._seconds = {call: _histogram(call, registry) for call in CALLS}
        running = prometheus.Gauge(
            "dra_gpu_plugin_claims_running",
            "Claims being worked on or waiting for a thread.",
            ["call"],
            registry=registry,
        )
        self.running = {call: running.labels(call=call) for call in CALLS}
        self.registered = prometheus.Gauge(
            "dra_gpu_plugin_registered",
            "1 while the kubelet accepts the plugin.",
            registry=registry,
        )
        self.registrations_refused = prometheus.Counter(
            "dra_gpu_plugin_registrations_refused",
            "Times the kubelet refused the plugin.",
            registry=registry,
        )
        self.slices = prometheus.Gauge(
            "dra_gpu_plugin_slices",
            "ResourceSlices of this node that are there.",
            registry=registry,
        )
        self.devices = prometheus.Gauge(
            "dra_gpu_plugin_devices", "Devices this node means to publish.", registry=registry
        )
        writes = prometheus.Counter(
            "dra_gpu_plugin_slice_writes",
            "Writes of ResourceSlices that the API server took.",
            ["verb"],
            registry=registry,
        )
        self.writes = {verb: writes.labels(verb=verb) for verb in WRITES}
        self.publish_failures = prometheus.Counter(
            "dra_gpu_plugin_publish_failures",
            "Times the slices could not be published.",
            registry=registry,
        )

        self._xids = prometheus.Counter(
            "dra_gpu_plugin_xids",
            "Xids that the GPU driver reported; `other` is a code that the table does not hold.",
            ["class", "xid"],
            registry=registry,
        )
        for row in xids.TABLE.values():
            self._xids.labels(row.xid_class.value, str(row.code))
        self.unhealthy_gpus = prometheus.Gauge(
            "dra_gpu_plugin_unhealthy_gpus",
            "GPUs whose health taints them, wholly or in a MIG instance.",
            registry=registry,
        )
        self.quarantined_gpus = _quarantined(registry)
        self.handing_over = _handing_over(registry)
        self.claims_over_share, self.share_overruns = _over_use(registry)
        self.resets = _resets(registry)

    def xid(self, row: xids.Xid) -> None:
        """The driver reported an Xid."""
        code = str(row.code) if row.code in xids.TABLE else "other"
        self._xids.labels(row.xid_class.value, code).inc()

    def finished(self, call: str, result: str, seconds: float) -> None:
        """A claim's prepare or unprepare ended; both words are of the closed sets."""
        self._seconds[call][result].observe(seconds)


def _quarantined(registry: prometheus.CollectorRegistry) -> prometheus.Gauge:
    return prometheus.Gauge(
        "dra_gpu_plugin_quarantined_gpus",
        "GPUs that failed again and again and are kept out until somebody clears them.",
        registry=registry,
    )


def _handing_over(registry: prometheus.CollectorRegistry) -> prometheus.Gauge:
    return prometheus.Gauge(
        "dra_gpu_plugin_handing_over",
        "1 while the node's devices pass from one allocator to the other.",
        registry=registry,
    )


def _over_use(
    registry: prometheus.CollectorRegistry,
) -> tuple[prometheus.Gauge, prometheus.Counter]:
    claims = prometheus.Gauge(
        "dra_gpu_plugin_claims_over_share",
        "Claims whose processes together use more memory of a GPU than they were given.",
        registry=registry,
    )
    overruns = prometheus.Counter(
        "dra_gpu_plugin_share_overruns",
        "Times a claim was found to use more than its share of a GPU; once an episode.",
        registry=registry,
    )
    return claims, overruns


def _histogram(
    call: str, registry: prometheus.CollectorRegistry
) -> dict[str, prometheus.Histogram]:
    histogram = prometheus.Histogram(
        f"dra_gpu_plugin_{call}_seconds",
        f"Time to {call} one claim, waiting for a thread included.",
        ["result"],
        buckets=_BUCKETS,
        registry=registry,
    )
    return {result: histogram.labels(result=result) for result in RESULTS}


def _resets(registry: prometheus.CollectorRegistry) -> dict[str, prometheus.Counter]:
    counter = prometheus.Counter(
        "dra_gpu_plugin_gpu_resets",
        "Resets of GPUs that asked for one (--reset-gpus).",
        ["result"],
        registry=registry,
    )
    return {result: counter.labels(result=result) for result in RESETS}

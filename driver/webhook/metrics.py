"""The webhook's metrics. Base units, closed label sets, every series there from the start."""

import prometheus_client as prometheus

WEBHOOKS = ("validate", "mutate", "gate")
VERDICTS = ("allowed", "warned", "converted", "gated", "refused", "unreadable", "failed")


class Metrics:
    """All of them, on a registry of their own."""

    def __init__(self, registry: prometheus.CollectorRegistry) -> None:
        requests = prometheus.Counter(
            "dra_gpu_admission_requests",
            "Admission reviews by webhook and verdict; unreadable ones are answered with 400, "
            "failed ones with 500.",
            ["webhook", "verdict"],
            registry=registry,
        )
        self._requests = {
            (webhook, verdict): requests.labels(webhook=webhook, verdict=verdict)
            for webhook in WEBHOOKS
            for verdict in VERDICTS
        }
        self.seconds = prometheus.Histogram(
            "dra_gpu_admission_request_seconds",
            "Time to answer an admission review, including calls to the API server.",
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
            registry=registry,
        )
        self.leading = prometheus.Gauge(
            "dra_gpu_admission_leading",
            "1 while this replica renews the certificate and removes unused templates.",
            registry=registry,
        )

        self.expires = prometheus.Gauge(
            "dra_gpu_admission_certificate_expiry_timestamp_seconds",
            "Expiry of the serving certificate as Unix time; 0 without one.",
            registry=registry,
        )

    def observe_review(self, webhook: str, verdict: str) -> None:
        """Count a review; both are of the closed sets."""
        self._requests[webhook, verdict].inc()

"""The page's metrics. Base units, closed label sets, every series there from the start."""

import prometheus_client as prometheus

ROUTES = (
    "overview", "node", "gpu", "claims", "claim", "waiting", "pods", "pod", "queues", "queue",
    "reservations", "reservation", "shapes", "timeline", "fleet", "static", "login", "other",
)  # fmt: skip
CODES = ("2xx", "3xx", "4xx", "5xx")


class Metrics:
    """All of them, on the process's registry."""

    def __init__(self, registry: prometheus.CollectorRegistry) -> None:
        requests = prometheus.Counter(
            "dra_gpu_page_requests",
            "Requests to the page and the JSON API by route and class of status code.",
            ["route", "code"],
            registry=registry,
        )
        self._requests = {
            (route, code): requests.labels(route=route, code=code)
            for route in ROUTES
            for code in CODES
        }
        self.seconds = prometheus.Histogram(
            "dra_gpu_page_request_seconds",
            "Time to answer a request of the page or the JSON API.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
            registry=registry,
        )

    def observe_request(self, route: str, code: int, seconds: float) -> None:
        """Count a request; a route that is not of the closed set is `other`."""
        label = route if route in ROUTES else "other"
        self._requests[label, f"{code // 100}xx"].inc()
        self.seconds.observe(seconds)

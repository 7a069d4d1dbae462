"""Shows figures to Prometheus at each scrape; a series is there as long as its figure is."""

from collections.abc import Callable, Iterator, Sequence

import prometheus_client.core as prometheus
import structlog

from driver.runtime.metrics import families

_log = structlog.get_logger(__name__)
Source = Callable[[], families.Figures]
"""The figures of now, from any thread; it waits for nobody."""


class FigureCollector:
    """A collector of `prometheus_client`: register it. Thread safe as `source` is."""

    def __init__(self, found: Sequence[families.Family], source: Source) -> None:
        self._families = tuple(found)
        self._source = source

    def describe(self) -> Iterator[prometheus.GaugeMetricFamily]:
        """The families without series: registering asks for no figures."""
        return (_gauge_family(one) for one in self._families)

    def collect(self) -> Iterator[prometheus.GaugeMetricFamily]:
        """Every family with its series; without any when the figures cannot be had."""
        try:
            figures = self._source()
        except Exception:  # noqa: BLE001 - the other metrics are to be read all the same
            _log.exception("figures not shown", families=[one.name for one in self._families])
            figures = {}
        for one in self._families:
            made = _gauge_family(one)
            for labels, value in sorted(figures.get(one.name, {}).items()):
                made.add_metric(labels, value)
            yield made


def _gauge_family(one: families.Family) -> prometheus.GaugeMetricFamily:
    return prometheus.GaugeMetricFamily(one.name, one.description, labels=one.labels)

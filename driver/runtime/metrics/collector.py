"""Exposes figures to Prometheus at each scrape; a series exists as long as its figure."""

from collections.abc import Callable, Iterator, Sequence

import prometheus_client.core as prometheus
import structlog

from driver.runtime.metrics import families

_log = structlog.get_logger(__name__)
Source = Callable[[], families.Figures]
"""Returns the current figures, from any thread, without waiting."""


class FigureCollector:
    """A collector of `prometheus_client`: register it. Thread safe as `source` is."""

    def __init__(self, families: Sequence[families.Family], source: Source) -> None:
        self._families = tuple(families)
        self._source = source

    def describe(self) -> Iterator[prometheus.GaugeMetricFamily]:
        """Yield the families without series: registering reads no figures."""
        return (_gauge_family(family) for family in self._families)

    def collect(self) -> Iterator[prometheus.GaugeMetricFamily]:
        """Yield every family with its series; without series if the figures cannot be read."""
        try:
            figures = self._source()
        except Exception:  # noqa: BLE001 - the other metrics are to be read all the same
            _log.exception("figures not shown", families=[family.name for family in self._families])
            figures = {}
        for family in self._families:
            gauge = _gauge_family(family)
            for labels, value in sorted(figures.get(family.name, {}).items()):
                gauge.add_metric(labels, value)
            yield gauge


def _gauge_family(family: families.Family) -> prometheus.GaugeMetricFamily:
    return prometheus.GaugeMetricFamily(family.name, family.description, labels=family.labels)

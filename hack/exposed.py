"""Every metric that our processes expose, read from their registries."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import prometheus_client

from driver.controller import metrics as controller_metrics
from driver.controller.collectors import scrape as controller_exposition
from driver.controller.web import metrics as page_metrics
from driver.kubeletplugin import metrics as plugin_metrics
from driver.kubeletplugin.collectors import scrape as plugin_exposition
from driver.mps import metrics as mps_metrics
from driver.runtime.metrics import families
from driver.webhook import metrics as admission_metrics


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric by the name that it is asked for; of a histogram, without the suffix."""

    name: str
    kind: str
    labels: frozenset[str]
    about: str


@dataclass(frozen=True, slots=True)
class _App:
    make: Callable[[prometheus_client.CollectorRegistry], object]
    shown: tuple[families.Family, ...] = ()


APPS: Final[Mapping[str, _App]] = {
    "controller": _App(
        lambda known: (
            controller_metrics.Metrics(known, ("h100-8",)),
            page_metrics.Metrics(known),
        ),
        controller_exposition.FAMILIES,
    ),
    "admission": _App(admission_metrics.Metrics),
    "kubeletplugin": _App(plugin_metrics.Metrics, plugin_exposition.FAMILIES),
    "mps": _App(mps_metrics.Metrics),
}


def of(app: str) -> Iterator[Metric]:
    """The metrics of a process."""
    registry = prometheus_client.CollectorRegistry()
    kept = APPS[app].make(registry)
    for family in registry.collect():
        labels = frozenset(name for one in family.samples for name in one.labels) - {"le"}
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield Metric(name, family.type, labels, family.documentation)
    del kept
    for one in APPS[app].shown:
        yield Metric(one.name, "gauge", frozenset(one.labels), one.description)


def series() -> Mapping[str, frozenset[str]]:
    """The labels of all that may be asked for, by name: a histogram has three."""
    found: dict[str, frozenset[str]] = {}
    for app in APPS:
        for one in of(app):
            if one.kind == "histogram":
                found[f"{one.name}_bucket"] = one.labels | {"le"}
                found |= {f"{one.name}_{suffix}": one.labels for suffix in ("sum", "count")}
            else:
                found[one.name] = one.labels
    return found

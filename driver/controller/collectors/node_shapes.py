"""Nodes on demand, by kind: how many are there and on their way, and for how long. Pure."""

import datetime as dt
from collections.abc import Iterable
from typing import Final

from driver.runtime.metrics.families import Family, Figures
from driver.scheduling.reports import model

_OF: Final = ("shape",)
LIVE: Final = Family("dra_gpu_nodes_live", "Existing nodes of the shape.", _OF)
IN_FLIGHT: Final = Family(
    "dra_gpu_nodes_in_flight",
    "Requested nodes of the shape that have not published all their GPUs.",
    _OF,
)
OLDEST: Final = Family(
    "dra_gpu_nodes_oldest_in_flight_seconds",
    "Age of the oldest node request of the shape in flight; 0 without one.",
    _OF,
)
RESTING: Final = Family(
    "dra_gpu_nodes_resting",
    "1 while no node of the shape is requested because an earlier request failed.",
    _OF,
)
FAMILIES: Final = (LIVE, IN_FLIGHT, OLDEST, RESTING)


def figures(shapes: Iterable[model.Shape], now: dt.datetime) -> Figures:
    """The figures of all shapes."""
    values: dict[str, dict[tuple[str, ...], float]] = {shape.name: {} for shape in FAMILIES}
    for shape in shapes:
        labels = (shape.name,)
        values[LIVE.name][labels] = shape.nodes
        values[IN_FLIGHT.name][labels] = len(shape.coming)
        values[OLDEST.name][labels] = max((_age_s(each, now) for each in shape.coming), default=0.0)
        values[RESTING.name][labels] = float(bool(shape.resting))
    return values


def _age_s(arriving: model.Coming, now: dt.datetime) -> float:
    return max(0.0, (now - dt.datetime.fromisoformat(arriving.since)).total_seconds())

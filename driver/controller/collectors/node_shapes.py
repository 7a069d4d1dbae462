"""Nodes on demand, by kind: how many are there and on their way, and for how long. Pure."""

import datetime as dt
from collections.abc import Iterable
from typing import Final

from driver.runtime.metrics.families import Family, Figures
from driver.scheduling.reports import model

_OF: Final = ("shape",)
LIVE: Final = Family("dra_gpu_nodes_live", "Nodes of the shape that are there.", _OF)
IN_FLIGHT: Final = Family(
    "dra_gpu_nodes_in_flight",
    "Nodes of the shape that are asked for and have not published all their GPUs.",
    _OF,
)
OLDEST: Final = Family(
    "dra_gpu_nodes_oldest_in_flight_seconds",
    "How long the oldest node of the shape is on its way; 0 where none is.",
    _OF,
)
RESTING: Final = Family(
    "dra_gpu_nodes_resting",
    "1 while no node of the shape is asked for, as one did not come.",
    _OF,
)
FAMILIES: Final = (LIVE, IN_FLIGHT, OLDEST, RESTING)


def figures(found: Iterable[model.Shape], now: dt.datetime) -> Figures:
    """The figures of all shapes."""
    made: dict[str, dict[tuple[str, ...], float]] = {one.name: {} for one in FAMILIES}
    for one in found:
        labels = (one.name,)
        made[LIVE.name][labels] = one.nodes
        made[IN_FLIGHT.name][labels] = len(one.coming)
        made[OLDEST.name][labels] = max((_age_s(each, now) for each in one.coming), default=0.0)
        made[RESTING.name][labels] = float(bool(one.resting))
    return made


def _age_s(one: model.Coming, now: dt.datetime) -> float:
    return max(0.0, (now - dt.datetime.fromisoformat(one.since)).total_seconds())

"""What happened, as events tell it, the newest first. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from driver import reasons
from driver.controller.reports import model

MOST = 1000


def of_events(found: Iterable[Mapping[str, Any]]) -> tuple[model.Moment, ...]:
    """Of raw events (events.k8s.io/v1) those whose reason is ours; of each the last time."""
    made = [_moment(one) for one in found if one.get("reason") in reasons.KNOWN]
    return tuple(sorted(made, key=lambda one: one.at, reverse=True))[:MOST]


def _moment(event: Mapping[str, Any]) -> model.Moment:
    regarding, series = event.get("regarding") or {}, event.get("series") or {}
    meta = event.get("metadata") or {}
    stamps = (series.get("lastObservedTime"), event.get("eventTime"), meta.get("creationTimestamp"))
    return model.Moment(
        at=next((str(one) for one in stamps if one), ""),
        reason=str(event.get("reason", "")),
        warning=event.get("type") == "Warning",
        kind=str(regarding.get("kind", "")),
        namespace=str(regarding.get("namespace", "")),
        name=str(regarding.get("name", "")),
        message=str(event.get("note", "")),
        count=int(series.get("count") or 1),
    )

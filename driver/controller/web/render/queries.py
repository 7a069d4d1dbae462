"""Query parameters of URLs. Pure."""

from collections.abc import Mapping
from typing import Literal, TypeVar

import pydantic

from driver import errors
from driver.scheduling.reports import paging

TIMELINE_LIMIT = 200
State = Literal["", "free", "used", "idle", "kept", "cordoned", "unhealthy"]
Health = Literal["", "healthy", "cordoned", "unhealthy"]
Mode = Literal["", "free", "kept", "whole", "mig", "mps", "time-slicing", "monitor"]
T = TypeVar("T", bound="Query")


class Query(pydantic.BaseModel):
    """Parameters of every list; `live` is the page's own: whether it refreshes."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    live: Literal["on", "off"] = "on"
    limit: int = pydantic.Field(default=paging.DEFAULT_LIMIT, ge=1, le=paging.MAX_LIMIT)
    after: str = pydantic.Field(default="", alias="continue")

    def url_parameters(self) -> dict[str, object]:
        """Return the parameters that differ from their defaults, by URL name."""
        return self.model_dump(by_alias=True, exclude_defaults=True)

    def changed(self, **changes: object) -> dict[str, object]:
        """Return the URL parameters with changes, from the first page on."""
        parameters = {
            key: value for key, value in self.url_parameters().items() if key != "continue"
        }
        return {
            key: value
            for key, value in {**parameters, **changes}.items()
            if value not in {"", None}
        }


class NodeQuery(Query):
    """Query of the overview: part of a node's name, and conditions on one of its GPUs."""

    name: str = ""
    product: str = ""
    mode: Mode = ""
    health: Health = ""
    state: State = ""
    sort: Literal["name", "free", "used"] = "name"

    @property
    def narrows(self) -> bool:
        """Return whether it selects certain GPUs."""
        return bool(self.product or self.mode or self.health or self.state)


class ObjectQuery(Query):
    """Query of claims, pods, reservations and queues: namespace and part of the name."""

    namespace: str = ""
    name: str = ""


class TimelineQuery(Query):
    """Query of the timeline."""

    limit: int = pydantic.Field(default=TIMELINE_LIMIT, ge=1, le=paging.MAX_LIMIT)
    namespace: str = ""
    name: str = ""
    reason: str = ""
    kind: str = ""


class NoFilters(Query):
    """Query of a single object: `live` alone."""


def read(model: type[T], parameters: Mapping[str, str]) -> T:
    """Parse the query. Raises BadInput naming every wrong parameter."""
    try:
        return model.model_validate(dict(parameters))
    except pydantic.ValidationError as e:
        problems = "; ".join(_problem(model, dict(error)) for error in e.errors())
        raise errors.BadInput("query", problems) from e


def _problem(model: type[Query], error: Mapping[str, object]) -> str:
    location = error["loc"]
    name = str(location[0]) if isinstance(location, tuple) and location else "?"
    if error["type"] == "extra_forbidden":
        names = ", ".join(sorted(field.alias or key for key, field in model.model_fields.items()))
        return f"{name} is not known; there are {names}"
    return f"{name} is {error['input']!r}: {str(error['msg'])[:1].lower()}{str(error['msg'])[1:]}"

"""What a URL asks for after its `?`. Pure."""

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
    """What every list takes; `live` is the page's own: whether it reads itself anew."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    live: Literal["on", "off"] = "on"
    limit: int = pydantic.Field(default=paging.USUAL, ge=1, le=paging.MOST)
    after: str = pydantic.Field(default="", alias="continue")

    def url_parameters(self) -> dict[str, object]:
        """What differs from saying nothing, by the names of the URL."""
        return self.model_dump(by_alias=True, exclude_defaults=True)

    def changed(self, **changes: object) -> dict[str, object]:
        """The same with changes, by the names of the URL; from the first page on."""
        parameters = {
            key: value for key, value in self.url_parameters().items() if key != "continue"
        }
        return {
            key: value
            for key, value in {**parameters, **changes}.items()
            if value not in {"", None}
        }


class NodeQuery(Query):
    """Of the overview: part of a node's name, and what one GPU of the node is all of."""

    name: str = ""
    product: str = ""
    mode: Mode = ""
    health: Health = ""
    state: State = ""
    sort: Literal["name", "free", "used"] = "name"

    @property
    def narrows(self) -> bool:
        """Whether it asks for certain GPUs."""
        return bool(self.product or self.mode or self.health or self.state)


class ObjectQuery(Query):
    """Of lists of claims, pods, reservations and queues: a namespace, a part of the name."""

    namespace: str = ""
    name: str = ""


class TimelineQuery(Query):
    """Of the timeline."""

    limit: int = pydantic.Field(default=TIMELINE_LIMIT, ge=1, le=paging.MOST)
    namespace: str = ""
    name: str = ""
    reason: str = ""
    kind: str = ""


class NoFilters(Query):
    """Of one thing: nothing but `live`."""


def read(model: type[T], parameters: Mapping[str, str]) -> T:
    """The query. Raises BadInput, which names every parameter that is wrong."""
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

"""`Reservation`: devices for work that is coming (D7). In the namespace of that work.

    apiVersion: ration.dev/v1alpha1
    kind: Reservation
    metadata: {namespace: vision, name: nightly}
    spec:
      for: {gang: nightly-train}
      start: "2026-12-01T22:00:00Z"
      ttl: 1h
      count: 4
      devices:
        requests:
        - name: gpu
          exactly: {deviceClassName: gpu.ration.dev, count: 8}

`devices` are what one pod asks, as in a ResourceClaim's `spec.devices`; `count` is how many such
pods are to be placed. The controller writes one too, with `evicting`, before it evicts pods for
another: what they had is held for it.
"""

from typing import Annotated, Any, Literal

import pydantic

from driver.api import crd

_MOST_PODS = 4096
_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"
)
Time = Annotated[str, pydantic.Field(pattern=_TIME)]
"""RFC 3339."""
Phase = Literal["Pending", "Held", "Used", "Expired"]


class Holder(crd.Strict):
    """Who may use what is reserved: exactly one of these.

    A `gang` by its name, a `pod` by its name (and `uid`, where it is one that is there), a `claim`
    by its name, pods that have all of some `labels`, in the Reservation's namespace; or the pods of
    a `queue`, in any.
    """

    gang: Annotated[str, pydantic.Field(min_length=1, max_length=253)] | None = None
    pod: crd.Name | None = None
    uid: Annotated[str, pydantic.Field(max_length=64)] | None = None
    claim: crd.Name | None = None
    labels: Annotated[dict[str, str], pydantic.Field(min_length=1, max_length=16)] | None = None
    queue: crd.Name | None = None


class PodRef(crd.Strict):
    """A pod that is there."""

    namespace: str
    name: str
    uid: str


class ReservationSpec(crd.Strict):
    """What is reserved, for whom, from when on and for how long.

    `ttl` runs from `start`, without one from the creation: what nobody used by then is given back.
    `since` is from when on the holder waits (RFC 3339), where it is not its pods' creation: it
    keeps its place. `evicting` are the pods that go for it.
    """

    for_: Annotated[Holder, pydantic.Field(alias="for")]
    start: Time | None = None
    ttl: crd.Duration = "1h"
    count: Annotated[int, pydantic.Field(ge=1, le=_MOST_PODS)] = 1
    devices: Annotated[dict[str, Any], pydantic.Field(default_factory=dict)]
    since: Time | None = None
    evicting: Annotated[tuple[PodRef, ...], pydantic.Field(max_length=_MOST_PODS)] = ()

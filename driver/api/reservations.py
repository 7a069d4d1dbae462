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
from pydantic import Field

from driver.api import crd

_MOST_PODS = 4096
_MOST_REQUESTS = 32
"""Of a claim, too (resource.k8s.io/v1, DeviceRequestsMaxSize)."""
Time = crd.Time
Phase = Literal["Pending", "Held", "Used", "Expired"]
_HOLDERS = ("gang", "pod", "claim", "labels", "queue")
_ASKED = pydantic.WithJsonSchema(
    {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "required": ["requests"],
        "properties": {
            "requests": {
                "type": "array",
                "minItems": 1,
                "maxItems": _MOST_REQUESTS,
                "description": "Device requests, as in spec.devices.requests of a ResourceClaim.",
                "items": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "required": ["name"],
                    "properties": {
                        "name": {
                            "type": "string",
                            "minLength": 1,
                            "maxLength": 63,
                            "description": "The request's name.",
                        }
                    },
                },
            }
        },
    }
)


class Holder(crd.Strict):
    """Holder of the reserved devices: exactly one of gang, pod, claim, labels, queue."""

    model_config = crd.add_rules(
        crd.Rule(
            f"[{', '.join(f'has(self.{one})' for one in _HOLDERS)}].exists_one(x, x)",
            f"exactly one of {', '.join(_HOLDERS)} is needed",
        ),
        crd.Rule(
            "!has(self.uid) || has(self.pod)", "a uid is that of a pod: name the pod too", ".uid"
        ),
        crd.Rule("self == oldSelf", "whom it is for is not changed: make another Reservation"),
    )
    gang: Annotated[
        Annotated[str, Field(min_length=1, max_length=253)] | None,
        Field(description="The gang of this name, in the Reservation's namespace."),
    ] = None
    pod: Annotated[
        crd.Name | None,
        Field(description="The pod of this name, in the Reservation's namespace."),
    ] = None
    uid: Annotated[
        Annotated[str, Field(max_length=64)] | None,
        Field(description="With pod: the UID of one that is there, so no other of its name."),
    ] = None
    claim: Annotated[
        crd.Name | None,
        Field(description="The ResourceClaim of this name, in the Reservation's namespace."),
    ] = None
    labels: Annotated[
        Annotated[crd.Labels, Field(min_length=1, max_length=16)] | None,
        Field(description="Pods with all of these labels, in the Reservation's namespace."),
    ] = None
    queue: Annotated[
        crd.Name | None, Field(description="The pods of this Queue, in any namespace.")
    ] = None


class PodRef(crd.Strict):
    """A pod that is there."""

    namespace: Annotated[str, Field(max_length=63, description="Its namespace.")]
    name: Annotated[str, Field(max_length=253, description="Its name.")]
    uid: Annotated[str, Field(max_length=64, description="Its UID.")]


class ReservationSpec(crd.Strict):
    """Reserved devices, their holder, the start and the duration."""

    model_config = crd.add_rules(
        crd.Rule("duration(self.ttl) > duration('0s')", "a time longer than none is needed", ".ttl")
    )
    for_: Annotated[
        Holder,
        Field(
            alias="for",
            description="Holder of the devices: exactly one of gang, pod, claim, labels, queue. "
            "Immutable.",
        ),
    ]
    start: Annotated[
        Time | None,
        Field(description="Start of the Reservation (RFC 3339). Default: now."),
    ] = None
    ttl: Annotated[
        crd.Duration,
        Field(
            description="How long it is held for whom has not come, from start on or else from its "
            "creation; then it is given back."
        ),
    ] = "1h"
    count: Annotated[
        int,
        Field(ge=1, le=_MOST_PODS, description="Number of pods to place; each requests devices."),
    ] = 1
    devices: Annotated[
        dict[str, Any],
        _ASKED,
        Field(
            default_factory=dict,
            description="Devices of each pod, as in spec.devices of a ResourceClaim.",
        ),
    ]
    since: Annotated[
        Time | None,
        Field(
            description="From when on the holder waits (RFC 3339), where that is not its pods' "
            "creation: it keeps its place."
        ),
    ] = None
    evicting: Annotated[
        tuple[PodRef, ...],
        Field(
            max_length=_MOST_PODS,
            description="Pods that are evicted for the holder; set by the controller.",
        ),
    ] = ()


class HeldDevice(crd.Strict):
    """A device, or so much of one, that is held for one of the pods."""

    pod: Annotated[int, Field(ge=0, description="Index of the pod, from 0.")]
    node: Annotated[str, Field(description="Node of the device.")]
    driver: Annotated[str, Field(description="The device's driver.")]
    pool: Annotated[str, Field(description="The device's pool.")]
    device: Annotated[str, Field(description="The device's name in the pool.")]
    consumed_capacity: Annotated[
        dict[str, str] | None, Field(description="Consumed capacity, if not the whole device.")
    ] = None


class ReservationStatus(crd.Strict):
    """Observed state of a Reservation."""

    phase: Annotated[
        Phase | None,
        Field(
            description="Pending: nothing is held yet. Held: devices are held. Used: the holder "
            "has them. Expired: they were given back."
        ),
    ] = None
    conditions: Annotated[crd.Conditions, Field(description="Conditions.")] = ()
    for_: Annotated[str | None, Field(alias="for", description="Holder, for display.")] = None
    count: Annotated[
        Annotated[int, Field(ge=0)] | None, Field(description="Number of held devices.")
    ] = None
    nodes: Annotated[str | None, Field(description="Nodes of the held devices, for display.")] = (
        None
    )
    devices: Annotated[tuple[HeldDevice, ...], Field(description="Held devices.")] = ()
    message: Annotated[str | None, Field(description="Human-readable details of the phase.")] = None


class Reservation(crd.Strict):
    """Devices that are kept free for work that is coming.

    They count as used for everyone but the holder, from start on until the holder has them or the
    ttl is over.
    """

    spec: Annotated[ReservationSpec, Field(description="Desired state.")]
    status: Annotated[
        ReservationStatus | None, Field(description="Observed state, written by the controller.")
    ] = None

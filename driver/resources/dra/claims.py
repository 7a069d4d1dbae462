"""ResourceClaims both ways: what is asked, what was allocated, and what we write (D3)."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from driver import ids, names
from driver.resources import fields, quantities
from driver.resources.core import node_selectors
from driver.resources.dra import device_status
from driver.resources.dra import requests as dra_requests

MAX_RESULTS = 32
Amounts = Mapping[str, quantities.Quantity]
_NOTHING_CONSUMED: Amounts = {}
NO_REQUESTS = dra_requests.ClaimSpec()


class DeviceId(NamedTuple):
    """A device: unique over the cluster."""

    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class Result:
    """One allocated device of a request (`main` or `main/sub`).

    `share_id` and `consumed` are of a device that several claims may have: which share it is, and
    how much of each capacity it takes (KEP-5075). `binding` and `failing` are the conditions that
    binding waits for (KEP-5007).
    """

    request: str
    device: DeviceId
    admin_access: bool = False
    share_id: str = ""
    tolerations: tuple[fields.Raw, ...] = ()
    consumed: Amounts = field(default_factory=dict)
    binding: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()

    @property
    def base_request(self) -> str:
        """The request's own name, without the subrequest."""
        return self.request.partition("/")[0]

    @property
    def subrequest(self) -> str:
        """The alternative of `firstAvailable` that was chosen; empty where there are none."""
        return self.request.partition("/")[2]


@dataclass(frozen=True, slots=True)
class AllocatedConfig:
    """Configuration as it stands in an allocation; `from_class` tells its source."""

    from_class: bool
    requests: tuple[str, ...]
    opaque: fields.Raw


@dataclass(frozen=True, slots=True)
class Allocation:
    """`status.allocation`. `selector` None: usable on every node. `stamped` is RFC 3339 or ""."""

    results: tuple[Result, ...]
    configs: tuple[AllocatedConfig, ...] = ()
    selector: node_selectors.NodeSelector | None = None
    stamped: str = ""


@dataclass(frozen=True, slots=True)
class Consumer:
    """An entry of `status.reservedFor`."""

    group: str
    resource: str
    name: str
    uid: str

    @property
    def is_pod(self) -> bool:
        """Return whether the entry names a pod."""
        return not self.group and self.resource == "pods"

    @property
    def is_pod_group(self) -> bool:
        """Return whether the entry names a PodGroup of Kubernetes' own (KEP-5729)."""
        return self.group == names.SCHEDULING_GROUP and self.resource == "podgroups"

    @property
    def is_hold(self) -> bool:
        """Return whether the entry is the driver's hold (D5)."""
        return self.group == names.GROUP and self.resource == names.HOLD_RESOURCE


@dataclass(frozen=True, slots=True)
class Claim:
    """A ResourceClaim as the driver needs it.

    `device_statuses` is what drivers report of its devices. `pod_claim` is the pod's own name for a
    claim that was made for it of a template. `for_extended_resources`: kube-scheduler made it for
    a pod, allocates it, and deletes it.
    """

    namespace: str
    name: str
    uid: ids.ClaimUid
    version: str
    spec: dra_requests.ClaimSpec = NO_REQUESTS
    allocation: Allocation | None = None
    consumers: tuple[Consumer, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False
    pod_claim: str = ""
    device_statuses: tuple[device_status.DeviceStatus, ...] = ()
    for_extended_resources: bool = False
    released: bool = False

    @property
    def key(self) -> ids.Key:
        """`namespace/name`."""
        return ids.Key(f"{self.namespace}/{self.name}")


def parse(obj: fields.Raw) -> Claim:
    """Read a ResourceClaim.

    Raises:
        BadInput: a field has another type than the API's.
    """
    meta = fields.mapping(obj, "metadata")
    status = fields.mapping(obj, "status")
    annotations = fields.mapping(meta, "annotations", "metadata")
    return Claim(
        namespace=fields.common_text(meta, "namespace", "metadata"),
        name=fields.required_text(meta, "name", "metadata"),
        uid=ids.ClaimUid(fields.text(meta, "uid", "metadata")),
        version=fields.text(meta, "resourceVersion", "metadata"),
        spec=dra_requests.parse(fields.mapping(fields.mapping(obj, "spec"), "devices", "spec")),
        allocation=_allocation(status),
        consumers=tuple(
            _consumer(item, path) for path, item in fields.objects(status, "reservedFor", "status")
        ),
        finalizers=fields.texts(meta, "finalizers", "metadata"),
        deleting=bool(meta.get("deletionTimestamp")),
        pod_claim=fields.common_text(
            annotations, names.POD_CLAIM_ANNOTATION, "metadata.annotations"
        ),
        device_statuses=device_status.parse(status),
        for_extended_resources=annotations.get(names.EXTENDED_RESOURCE_CLAIM) == "true",
        released=annotations.get(names.RELEASED) == "true",
    )


def _allocation(status: fields.Raw) -> Allocation | None:
    field_path = "status.allocation"
    allocation = fields.mapping(status, "allocation", "status")
    if not allocation:
        return None
    devices = fields.mapping(allocation, "devices", field_path)
    selector = fields.mapping(allocation, "nodeSelector", field_path)
    return Allocation(
        results=tuple(
            _result(item, path) for path, item in fields.objects(devices, "results", field_path)
        ),
        configs=tuple(
            AllocatedConfig(
                fields.text(item, "source", path) == "FromClass",
                fields.texts(item, "requests", path),
                fields.mapping(item, "opaque", path),
            )
            for path, item in fields.objects(devices, "config", field_path)
        ),
        selector=node_selectors.parse(selector, field_path) if selector else None,
        stamped=fields.common_text(allocation, "allocationTimestamp", field_path),
    )


def _result(obj: fields.Raw, path: str) -> Result:
    return Result(
        request=sys.intern(fields.required_text(obj, "request", path)),
        device=DeviceId(
            *[
                sys.intern(fields.required_text(obj, key, path))
                for key in ("driver", "pool", "device")
            ]
        ),
        admin_access=fields.flag(obj, "adminAccess", path),
        share_id=fields.text(obj, "shareID", path),
        tolerations=tuple(item for _, item in fields.objects(obj, "tolerations", path)),
        consumed=_consumed(obj, path),
        binding=fields.texts(obj, "bindingConditions", path),
        failing=fields.texts(obj, "bindingFailureConditions", path),
    )


def _consumed(obj: fields.Raw, path: str) -> Amounts:
    consumed = fields.mapping(obj, "consumedCapacity", path)
    if not consumed:
        return _NOTHING_CONSUMED
    return {
        sys.intern(key): quantities.parse(amount, f"{path}.consumedCapacity[{key}]")
        for key, amount in consumed.items()
    }


def _consumer(obj: fields.Raw, path: str) -> Consumer:
    return Consumer(
        group=fields.common_text(obj, "apiGroup", path),
        resource=fields.common_text(obj, "resource", path),
        name=fields.text(obj, "name", path),
        uid=fields.text(obj, "uid", path),
    )


def render_allocation(allocation: Allocation) -> dict[str, object]:
    """Return `status.allocation` as kube-scheduler's allocator writes it (K-2)."""
    devices: dict[str, object] = {
        "results": [_render_result(result) for result in allocation.results]
    }
    if allocation.configs:
        devices["config"] = [_render_config(config) for config in allocation.configs]
    shown: dict[str, object] = {"devices": devices, "allocationTimestamp": allocation.stamped}
    if allocation.selector is not None:
        shown["nodeSelector"] = node_selectors.render(allocation.selector)
    return shown


def _render_result(result: Result) -> dict[str, object]:
    shown: dict[str, object] = {"request": result.request, **result.device._asdict()}
    if result.admin_access:
        shown["adminAccess"] = True
    if result.tolerations:
        shown["tolerations"] = [dict(quantity) for quantity in result.tolerations]
    if result.share_id:
        shown["shareID"] = result.share_id
    if result.consumed:
        shown["consumedCapacity"] = {
            key: quantity.text for key, quantity in result.consumed.items()
        }
    if result.binding:
        shown["bindingConditions"] = list(result.binding)
        shown["bindingFailureConditions"] = list(result.failing)
    return shown


def _render_config(config: AllocatedConfig) -> dict[str, object]:
    shown: dict[str, object] = {"source": "FromClass" if config.from_class else "FromClaim"}
    if config.requests:
        shown["requests"] = list(config.requests)
    return {**shown, "opaque": dict(config.opaque)}


def render_device_status(
    claim: Claim, device_statuses: Iterable[device_status.DeviceStatus]
) -> dict[str, object]:
    """Return the body to apply to the claim's status for these device statuses.

    Valid for the claim as it was read: the devices may be another's after a change.
    """
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
            "resourceVersion": claim.version,
        },
        "status": {"devices": [device_status.render(item) for item in device_statuses]},
    }


def render_consumer(consumer: Consumer) -> dict[str, object]:
    """One entry of `status.reservedFor`."""
    group = {"apiGroup": consumer.group} if consumer.group else {}
    return {**group, "resource": consumer.resource, "name": consumer.name, "uid": consumer.uid}

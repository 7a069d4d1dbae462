"""Facts for the checks: objects as the API server wrote them, or why there are none."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from driver import names
from driver.cli import permissions
from driver.resources import fields
from driver.scheduling.device_ownership import desired

COMPONENT: Final = "app.kubernetes.io/component"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Objects that could not be read. `right` is what a caller needs for it: `list nodes`."""

    right: str
    problem: str
    forbidden: bool = False
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Right:
    """Right of a component's account, and whether it is granted."""

    component: str
    account: str
    right: permissions.Right
    given: bool


Listing: TypeAlias = tuple[fields.Raw, ...] | Unreadable


@dataclass(frozen=True, slots=True)
class ManagedDevices:
    """Other drivers whose devices the controller allocates, as configured in the namespace.

    `rules` are the controller's DeviceTaintRules. With a driver, `slices` are those of these
    drivers, and `pods` the pending ones of all namespaces; without one, both are empty.
    """

    drivers: tuple[desired.ManagedDriver, ...] | Unreadable = ()
    rules: Listing = ()
    slices: Listing = ()
    pods: Listing = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was gathered. `node` is the only one asked about, or "" for all.

    `slices` are those of `driver`; `leases` and `pods` those of `namespace`; `now` is the caller's
    clock. `events` are those of nodes, `given` the rights that our components need, `gates` the API
    server's feature gates as far as it tells them.
    """

    driver: str
    namespace: str
    now: dt.datetime
    version: str | Unreadable
    nodes: Listing
    slices: Listing
    classes: Listing
    leases: Listing
    pods: Listing
    daemon_sets: Listing
    webhooks: Listing
    node: str = ""
    events: Listing = ()
    given: tuple[Right, ...] | Unreadable = ()
    gates: Mapping[str, bool] = field(default_factory=dict)
    managed: ManagedDevices = ManagedDevices()


def name(obj: fields.Raw) -> str:
    """`metadata.name`."""
    return fields.text(fields.mapping(obj, "metadata"), "name")


def labels(obj: fields.Raw) -> Mapping[str, str]:
    """`metadata.labels`."""
    return fields.text_map(fields.mapping(obj, "metadata"), "labels")


def managed_drivers(seen: Facts) -> tuple[desired.ManagedDriver, ...]:
    """Return the configured drivers; none where they could not be read."""
    drivers = seen.managed.drivers
    return () if isinstance(drivers, Unreadable) else drivers


def has_plugin(seen: Facts) -> bool:
    """Return whether our kubelet plugin is installed, as far as can be told.

    Without managed drivers it always is: a controller alone would have no devices.
    """
    if not managed_drivers(seen) or isinstance(seen.slices, Unreadable) or seen.slices:
        return True
    workloads = (
        obj
        for listing in (seen.pods, seen.daemon_sets)
        if not isinstance(listing, Unreadable)
        for obj in listing
    )
    return any(
        labels(obj).get(COMPONENT) == "kubeletplugin"
        and fields.text(fields.mapping(obj, "metadata"), "namespace") == seen.namespace
        for obj in workloads
    )


def selects_driver(device_class: fields.Raw, driver: str) -> bool:
    """Return whether a DeviceClass names a driver in its selectors or configuration."""
    text = str(device_class["spec"])
    return f'"{driver}"' in text or f"'{driver}'" in text


def logs_command(seen: Facts, component: str) -> str:
    """Return the command that shows a component's logs."""
    return f"kubectl -n {seen.namespace} logs -l {COMPONENT}={component} --tail=20"


def parse_time(text: str) -> dt.datetime:
    """Return an RFC 3339 time; the beginning of all time when it is none."""
    try:
        return dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    except ValueError:
        return dt.datetime.min.replace(tzinfo=dt.UTC)


def devices(slices: Iterable[fields.Raw]) -> Iterator[fields.Raw]:
    """The devices of slices, in order."""
    for slice_ in slices:
        for _, device in fields.objects(fields.mapping(slice_, "spec"), "devices"):
            yield device


def attribute(device: fields.Raw, key: str) -> str:
    """A string attribute; empty when absent."""
    return fields.text(fields.mapping(fields.mapping(device, "attributes"), key), "string")


def is_allocatable(device: fields.Raw) -> bool:
    """Return whether the device can be allocated: monitors cannot."""
    return attribute(device, names.ATTR_TYPE) != names.TYPE_MONITOR


def taints(device: fields.Raw) -> frozenset[str]:
    """The keys of a device's taints."""
    return frozenset(fields.text(item, "key") for _, item in fields.objects(device, "taints"))

"""Devices of a node, read from raw slices (KEP-4381, 4815, 5055)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracle import scenarios

Raw = dict[str, Any]
Id = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Placed:
    """A device, the slice that has it, and the taints that it has by itself and by rules."""

    id: Id
    raw: Raw
    slice: Raw
    taints: tuple[Raw, ...]

    @property
    def shared(self) -> bool:
        """Return whether several may use it at once."""
        return bool(self.raw.get("allowMultipleAllocations"))

    @property
    def near(self) -> Raw:
        """Return what says from which nodes it can be used: the device or its slice."""
        spec = self.slice["spec"]
        return self.raw if spec.get("perDeviceNodeSelection") else spec


@dataclass(frozen=True, slots=True)
class Pool:
    """The newest generation of a pool. `why_not` says why it is not usable, else empty."""

    driver: str
    name: str
    slices: tuple[Raw, ...]
    why_not: str

    @property
    def sets(self) -> Mapping[str, Mapping[str, Raw]]:
        """Counters by counter set."""
        return {
            entry["name"]: entry["counters"]
            for part in self.slices
            for entry in part["spec"].get("sharedCounters", ())
        }

    def reaches(self, node: str, labels: scenarios.Labels) -> bool:
        """Return whether any slice of it is for the node."""
        return any(
            any(near_enough(entry, node, labels) for entry in part["spec"].get("devices", ()))
            if part["spec"].get("perDeviceNodeSelection")
            else near_enough(part["spec"], node, labels)
            for part in self.slices
        )


class Inventory:
    """All pools of a cluster, newest generations only."""

    def __init__(self, cluster: scenarios.Cluster) -> None:
        self._rules = [rule["spec"] for rule in cluster.rules]
        grouped: dict[tuple[str, str], list[Raw]] = {}
        for slice_ in cluster.slices:
            key = (slice_["spec"]["driver"], slice_["spec"]["pool"]["name"])
            grouped.setdefault(key, []).append(slice_)
        self.pools = {key: _newest(key, parts) for key, parts in grouped.items()}
        self.devices = {
            placed.id: placed for pool in self.pools.values() for placed in self._of(pool)
        }

    def on(self, node: str, labels: scenarios.Labels) -> Iterator[Placed]:
        """The devices that can be used there, in whatever state they are."""
        for device in self.devices.values():
            pool = self.pools[device.id[:2]]
            if not pool.why_not and near_enough(device.near, node, labels):
                yield device

    def _of(self, pool: Pool) -> Iterator[Placed]:
        for part in pool.slices:
            for raw in part["spec"].get("devices", ()):
                values = (pool.driver, pool.name, raw["name"])
                ruled = tuple(
                    rule["taint"]
                    for rule in self._rules
                    if _selects(rule.get("deviceSelector"), values)
                )
                yield Placed(values, raw, part, (*raw.get("taints", ()), *ruled))


def _selects(selector: Raw | None, values: Id) -> bool:
    if selector is None:
        return False
    return all(
        selector.get(key, name) == name
        for key, name in zip(("driver", "pool", "device"), values, strict=True)
    )


def _newest(key: tuple[str, str], parts: list[Raw]) -> Pool:
    newest = max(part["spec"]["pool"]["generation"] for part in parts)
    retained = tuple(part for part in parts if part["spec"]["pool"]["generation"] == newest)
    return Pool(*key, retained, _why_not(retained))


def _why_not(parts: tuple[Raw, ...]) -> str:
    if len(parts) != parts[0]["spec"]["pool"]["resourceSliceCount"]:
        return "incomplete"
    devices = [entry for part in parts for entry in part["spec"].get("devices", ())]
    if _twice(device["name"] for device in devices):
        return "invalid: a device name is there twice"
    sets = [entry for part in parts for entry in part["spec"].get("sharedCounters", ())]
    if _twice(set_["name"] for set_ in sets):
        return "invalid: a counter set is there twice"
    fields = {set_["name"]: set_["counters"] for set_ in sets}
    for device in devices:
        for uses in device.get("consumesCounters", ()):
            if not set(uses["counters"]) <= set(fields.get(uses["counterSet"], ())):
                return f"invalid: {device['name']} draws on what is not there"
    return ""


def _twice(names: Iterable[str]) -> bool:
    return any(count > 1 for count in Counter(names).values())


def near_enough(near: Raw, node: str, labels: scenarios.Labels) -> bool:
    """Return whether nodeName, allNodes or nodeSelector admit the node."""
    if "nodeName" in near:
        return bool(near["nodeName"] == node)
    if near.get("allNodes"):
        return True
    terms = near.get("nodeSelector", {}).get("nodeSelectorTerms", ())
    return any(_term(term, node, labels) for term in terms)


def _term(term: Raw, node: str, labels: scenarios.Labels) -> bool:
    fields = term.get("matchFields", ())
    expressions = term.get("matchExpressions", ())
    if not fields and not expressions:
        return False
    return all(_meets(field, {"metadata.name": node}) for field in fields) and all(
        _meets(expression, labels) for expression in expressions
    )


def _meets(expected: Raw, labels: scenarios.Labels) -> bool:
    value = labels.get(expected["key"])
    match expected["operator"]:
        case "In":
            return value in expected["values"]
        case "NotIn":
            return value not in expected["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(expected["values"][0])
        case _:
            return value is not None and int(value) < int(expected["values"][0])

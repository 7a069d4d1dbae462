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
            one["name"]: one["counters"]
            for part in self.slices
            for one in part["spec"].get("sharedCounters", ())
        }

    def reaches(self, node: str, labels: scenarios.Labels) -> bool:
        """Return whether any slice of it is for the node."""
        return any(
            any(near_enough(one, node, labels) for one in part["spec"].get("devices", ()))
            if part["spec"].get("perDeviceNodeSelection")
            else near_enough(part["spec"], node, labels)
            for part in self.slices
        )


class Inventory:
    """All pools of a cluster, newest generations only."""

    def __init__(self, cluster: scenarios.Cluster) -> None:
        self._rules = [rule["spec"] for rule in cluster.rules]
        grouped: dict[tuple[str, str], list[Raw]] = {}
        for one in cluster.slices:
            key = (one["spec"]["driver"], one["spec"]["pool"]["name"])
            grouped.setdefault(key, []).append(one)
        self.pools = {key: _newest(key, parts) for key, parts in grouped.items()}
        self.devices = {one.id: one for pool in self.pools.values() for one in self._of(pool)}

    def on(self, node: str, labels: scenarios.Labels) -> Iterator[Placed]:
        """The devices that can be used there, in whatever state they are."""
        for device in self.devices.values():
            pool = self.pools[device.id[:2]]
            if not pool.why_not and near_enough(device.near, node, labels):
                yield device

    def _of(self, pool: Pool) -> Iterator[Placed]:
        for part in pool.slices:
            for raw in part["spec"].get("devices", ()):
                where = (pool.driver, pool.name, raw["name"])
                ruled = tuple(
                    rule["taint"]
                    for rule in self._rules
                    if _selects(rule.get("deviceSelector"), where)
                )
                yield Placed(where, raw, part, (*raw.get("taints", ()), *ruled))


def _selects(selector: Raw | None, where: Id) -> bool:
    if selector is None:
        return False
    return all(
        selector.get(key, name) == name
        for key, name in zip(("driver", "pool", "device"), where, strict=True)
    )


def _newest(key: tuple[str, str], parts: list[Raw]) -> Pool:
    newest = max(one["spec"]["pool"]["generation"] for one in parts)
    kept = tuple(one for one in parts if one["spec"]["pool"]["generation"] == newest)
    return Pool(*key, kept, _why_not(kept))


def _why_not(parts: tuple[Raw, ...]) -> str:
    if len(parts) != parts[0]["spec"]["pool"]["resourceSliceCount"]:
        return "incomplete"
    devices = [one for part in parts for one in part["spec"].get("devices", ())]
    if _twice(one["name"] for one in devices):
        return "invalid: a device name is there twice"
    sets = [one for part in parts for one in part["spec"].get("sharedCounters", ())]
    if _twice(one["name"] for one in sets):
        return "invalid: a counter set is there twice"
    known = {one["name"]: one["counters"] for one in sets}
    for device in devices:
        for uses in device.get("consumesCounters", ()):
            if not set(uses["counters"]) <= set(known.get(uses["counterSet"], ())):
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
    return any(_term(one, node, labels) for one in terms)


def _term(term: Raw, node: str, labels: scenarios.Labels) -> bool:
    fields = term.get("matchFields", ())
    expressions = term.get("matchExpressions", ())
    if not fields and not expressions:
        return False
    return all(_meets(one, {"metadata.name": node}) for one in fields) and all(
        _meets(one, labels) for one in expressions
    )


def _meets(wanted: Raw, labels: scenarios.Labels) -> bool:
    value = labels.get(wanted["key"])
    match wanted["operator"]:
        case "In":
            return value in wanted["values"]
        case "NotIn":
            return value not in wanted["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(wanted["values"][0])
        case _:
            return value is not None and int(value) < int(wanted["values"][0])

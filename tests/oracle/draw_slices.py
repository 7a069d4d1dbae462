"""Drawing what drivers publish: pools of a few devices, whole, shared or cut, near and far."""

import random  # noqa: TID251 - the same scenario for the same seed
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracle import draw_capacity
from tests.support.builders import objects

Raw = dict[str, Any]
DRIVERS = ("gpu.example.com", "nic.example.com", "fpga.test.io")
CROWD = 34
ROOT = "resource.kubernetes.io/pcieRoot"
TAINTS: tuple[Raw, ...] = (
    {"key": "sick", "value": "yes", "effect": "NoSchedule"},
    {"key": "sick", "effect": "NoExecute"},
    {"key": "example.com/drain", "value": "soon", "effect": "NoExecute"},
    {"key": "owner", "value": "blue", "effect": "NoSchedule"},
    {"key": "note", "value": "info", "effect": "None"},
)
CONDITIONS = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}


@dataclass(slots=True)
class Fleet:
    """Everything published."""

    drivers: tuple[str, ...]
    slices: list[Raw] = field(default_factory=list)


@dataclass(slots=True)
class _Pool:
    """Pool before it is cut into slices."""

    driver: str
    name: str
    near: Raw
    kind: str
    devices: list[Raw] = field(default_factory=list)
    sets: list[Raw] = field(default_factory=list)


def fleet(
    chance: random.Random, nodes: Mapping[str, Mapping[str, str]], *, lists: bool, crowd: bool
) -> Fleet:
    """One to three drivers, each with pools on nodes or in the network.

    Of a crowd one pool has more devices than a claim may get.
    """
    drivers = DRIVERS[: chance.choice((1, 1, 2, 2, 3))]
    created = Fleet(drivers)
    for driver in drivers:
        kinds = chance.choice(
            (
                ("whole",),
                ("shared",),
                ("cut",),
                ("whole", "shared"),
                ("cut", "whole"),
                ("cut share",),
            )
        )
        for name, near in _places(chance, driver, list(nodes)):
            pool = _Pool(driver, name, near, chance.choice(kinds))
            _fill(chance, pool, list(nodes), lists=lists)
            if crowd and not created.slices:
                pool.devices += [_one_of_many(pool, number) for number in range(CROWD)]
            created.slices += _published(chance, pool)
    chance.shuffle(created.slices)
    return created


def _one_of_many(pool: _Pool, number: int) -> Raw:
    everywhere = {"allNodes": True} if "perDeviceNodeSelection" in pool.near else {}
    attributes = {
        "index": {"int": number},
        "model": {"string": "a100"},
        "numa": {"int": number % 2},
    }
    return {"name": f"many-{number}", "attributes": attributes, **everywhere}


def _places(chance: random.Random, driver: str, nodes: list[str]) -> Iterable[tuple[str, Raw]]:
    """Pools by name, each with the fields that say from which nodes it can be used."""
    location = chance.random()
    if location < 0.7:
        for node in nodes:
            if chance.random() < 0.95:
                yield node, {"nodeName": node}
            if chance.random() < 0.12:
                yield f"{node}/more", {"nodeName": node}
    if location > 0.6:
        kind = chance.choice(("all", "rack", "each", "name"))
        if kind == "all":
            yield "fabric", {"allNodes": True}
        elif kind == "each":
            yield "mixed", {"perDeviceNodeSelection": True}
        elif kind == "name":
            fields = [{"key": "metadata.name", "operator": "In", "values": nodes[-1:]}]
            yield "last", {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]}}
        else:
            yield f"racks-{driver[:3]}", {"nodeSelector": _terms(chance)}


def _terms(chance: random.Random) -> Raw:
    expected = chance.choice(
        (
            {"key": "rack", "operator": "In", "values": ["r1"]},
            {"key": "rack", "operator": "NotIn", "values": ["r1"]},
            {"key": "tier", "operator": "Exists"},
            {"key": "tier", "operator": "DoesNotExist"},
            {"key": "tier", "operator": "Gt", "values": ["4"]},
            {"key": "rack", "operator": "In", "values": ["r1", "r2"]},
        )
    )
    return {"nodeSelectorTerms": [{"matchExpressions": [expected]}]}


def _fill(chance: random.Random, pool: _Pool, nodes: list[str], *, lists: bool) -> None:
    far = "nodeName" not in pool.near
    if pool.kind.startswith("cut"):
        pool.sets = [_a_set(chance, number) for number in range(chance.choice((1, 1, 2, 3)))]
    for number in range(chance.choice((2, 3, 4, 4, 5, 6) if not far else (3, 4, 5, 6))):
        shared = pool.kind.endswith("share") or (pool.kind == "shared" and chance.random() < 0.85)
        device = _a_device(chance, f"dev-{number}", number, shared=shared, lists=lists)
        if pool.sets and chance.random() < 0.85:
            device["consumesCounters"] = _uses(chance, pool.sets)
        if "perDeviceNodeSelection" in pool.near:
            device |= chance.choice(
                (
                    {"allNodes": True},
                    {"nodeName": chance.choice(nodes)},
                    {"nodeSelector": _terms(chance)},
                )
            )
        pool.devices.append(device)


def _a_device(chance: random.Random, name: str, number: int, *, shared: bool, lists: bool) -> Raw:
    device: Raw = {"name": name, "attributes": _attributes(chance, number, lists=lists)}
    capacity = draw_capacity.of_device(chance, shared=shared)
    if capacity:
        device["capacity"] = capacity
    if shared:
        device["allowMultipleAllocations"] = True
    if chance.random() < 0.1:
        device["taints"] = chance.sample(TAINTS, chance.choice((1, 1, 2)))
    if chance.random() < 0.06:
        device |= CONDITIONS
        if chance.random() < 0.5:
            device["bindsToNode"] = True
    return device


def _attributes(chance: random.Random, number: int, *, lists: bool) -> Raw:
    result: Raw = {
        "index": {"int": number},
        "model": {"string": chance.choice(("a100", "a100", "h100"))},
        "healthy": {"bool": chance.random() < 0.8},
        "firmware": {"version": chance.choice(("1.2.0", "1.10.0", "2.0.0-rc.1"))},
        ROOT: {"string": chance.choice(("pci0000:00", "pci0000:40"))},
        "numa": {"int": chance.choice((0, 0, 1))},
    }
    if chance.random() < 0.1:
        result["numa"] = {"string": "0"}
    if chance.random() < 0.3:
        result["example.org/zone"] = {"string": chance.choice(("x", "y"))}
    if lists:
        result |= _lists(chance)
    for key in list(result):
        if key != "index" and chance.random() < 0.05:
            del result[key]
    return result


def _lists(chance: random.Random) -> Raw:
    result: Raw = {"links": {"ints": sorted(chance.sample(range(5), chance.choice((1, 2, 3))))}}
    if chance.random() < 0.4:
        result["numa"] = {"ints": chance.choice(([0], [1], [0, 1]))}
    if chance.random() < 0.3:
        result[ROOT] = {"strings": chance.sample(["pci0000:00", "pci0000:40", "pci0000:80"], 2)}
    if chance.random() < 0.3:
        result["firmware"] = {"versions": chance.sample(["1.2.0", "1.10.0"], chance.choice((1, 2)))}
    if chance.random() < 0.3:
        result["healthy"] = {"bools": chance.choice(([True], [False], [True, False]))}
    return result


def _a_set(chance: random.Random, number: int) -> Raw:
    counters: Raw = {"memory": {"value": chance.choice(("80Gi", "40Gi", "60Gi"))}}
    for slot in range(chance.choice((0, 0, 2))):
        counters[f"slot-{slot}"] = {"value": "1"}
    return {"name": f"card-{number}", "counters": counters}


def _uses(chance: random.Random, sets: list[Raw]) -> list[Raw]:
    used = chance.sample(sets, 2 if len(sets) > 1 and chance.random() < 0.2 else 1)
    results = []
    for entry in used:
        counters: Raw = {
            "memory": {"value": chance.choice(("10Gi", "10Gi", "20Gi", "20Gi", "40Gi", "80Gi"))}
        }
        for name in entry["counters"]:
            if name != "memory" and chance.random() < 0.5:
                counters[name] = {"value": "1"}
        results.append({"counterSet": entry["name"], "counters": counters})
    return results


def _published(chance: random.Random, pool: _Pool) -> Iterable[Raw]:
    """The pool cut into slices; now and then one of the ways a pool is not usable."""
    cuts = chance.choice((1, 1, 2))
    parts: list[Raw] = [{"devices": pool.devices[first::cuts]} for first in range(cuts)]
    if pool.sets:
        parts += [{"sharedCounters": halve} for halve in _halves(chance, pool.sets)]
    _damage(chance, pool, parts)
    count = len(parts) + (1 if chance.random() < 0.03 else 0)
    generation = chance.choice((1, 1, 1, 4))
    for number, part in enumerate(parts):
        yield _a_slice(pool, f"{generation}-{number}", generation, count, part)
    if generation > 1 and chance.random() < 0.6:
        stale = [{**device, "name": f"old-{i}"} for i, device in enumerate(pool.devices)]
        yield _a_slice(
            pool, "0-0", generation - 1, 1, {"devices": [_uncut(entry) for entry in stale]}
        )


def _uncut(device: Raw) -> Raw:
    return {key: value for key, value in device.items() if key != "consumesCounters"}


def _halves(chance: random.Random, sets: list[Raw]) -> list[list[Raw]]:
    if len(sets) > 1 and chance.random() < 0.3:
        return [sets[:1], sets[1:]]
    return [sets]


def _damage(chance: random.Random, pool: _Pool, parts: list[Raw]) -> None:
    draw = chance.random()
    if draw < 0.015 and len(parts) > 1 and "nodeName" in pool.near and parts[1].get("devices"):
        twin = chance.choice(pool.devices)
        others = [device for device in parts[1]["devices"] if device["name"] != twin["name"]]
        parts[0]["devices"] = [
            *(device for device in parts[0]["devices"] if device["name"] != twin["name"]),
            twin,
        ]
        parts[1]["devices"] = [*others, twin]
    elif draw < 0.03 and pool.sets:
        del parts[-1]


def _a_slice(pool: _Pool, part: str, generation: int, count: int, content: Raw) -> Raw:
    near = dict(pool.near)
    if "sharedCounters" in content and "perDeviceNodeSelection" in near:
        near = {"allNodes": True}
    name = f"{pool.name.replace('/', '-')}-{pool.driver}-{part}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": objects.meta(name, None),
        "spec": {
            "driver": pool.driver,
            "pool": {"name": pool.name, "generation": generation, "resourceSliceCount": count},
            **near,
            **content,
        },
    }


def rules(chance: random.Random, created: Fleet) -> tuple[Raw, ...]:
    """Now and then a rule that taints some of the devices, or none."""
    if chance.random() < 0.8 or not created.slices:
        return ()
    item = chance.choice(created.slices)["spec"]
    selector = chance.choice(
        (
            {"driver": item["driver"]},
            {"pool": item["pool"]["name"]},
            {"driver": item["driver"], "pool": item["pool"]["name"], "device": "dev-0"},
            {"device": "dev-1"},
            None,
        )
    )
    spec: Raw = {"taint": chance.choice(TAINTS)}
    if selector is not None:
        spec["deviceSelector"] = selector
    return (
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": objects.meta("rule", None),
            "spec": spec,
        },
    )

"""Attachments of an allocation: flags, copies, configuration, node selection.

K-2 lists what an allocator copies into `status.allocation`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.oracle import asked, inventory, scenarios

Raw = dict[str, Any]
Config = tuple[str, tuple[str, ...], Any]
_COPIED = ("bindingConditions", "bindingFailureConditions")
_KNOWN = frozenset(
    {"request", "driver", "pool", "device", "adminAccess", "tolerations", *_COPIED}
    | {"shareID", "consumedCapacity"}
)
Requirement = tuple[str, str, frozenset[str]]


def problems(
    cluster: scenarios.Cluster,
    devices: Mapping[inventory.Id, inventory.Placed],
    node: str,
    claim: Raw,
    picked: list[asked.Chosen],
    allocation: Raw,
) -> Iterator[str]:
    """Yield what is wrong with it."""
    used = []
    for chosen in picked:
        for result in chosen.results:
            device = devices.get((result["driver"], result["pool"], result["device"]))
            if device is not None:
                used.append(device)
                yield from _copied(chosen, device, result)
    configs = [_config(entry) for entry in allocation["devices"].get("config", ())]
    due = _configs(cluster, claim, picked)
    if [_wide(config, picked) for config in configs] != [_wide(row, picked) for row in due]:
        yield f"config is {configs}, due is {due}"
    if _selector(allocation.get("nodeSelector")) != _due_selector(used, node):
        yield f"nodeSelector is {allocation.get('nodeSelector')}"


def _copied(chosen: asked.Chosen, device: inventory.Placed, result: Raw) -> Iterator[str]:
    if bool(result.get("adminAccess")) != chosen.admin:
        yield f"{chosen.name}: adminAccess is {result.get('adminAccess')}"
    if result.get("tolerations", []) != chosen.body.get("tolerations", []):
        yield f"{chosen.name}: tolerations are {result.get('tolerations')}"
    for key in _COPIED:
        if result.get(key, []) != device.raw.get(key, []):
            yield f"{chosen.name}: {key} is {result.get(key)}"
    if not set(result) <= _KNOWN:
        yield f"{chosen.name}: fields {sorted(set(result) - _KNOWN)}"


def _config(entry: Raw) -> Config:
    return entry["source"], tuple(entry.get("requests") or ()), entry.get("opaque")


def _configs(cluster: scenarios.Cluster, claim: Raw, picked: list[asked.Chosen]) -> list[Config]:
    """Class configuration first, once a class; then what the claim says of what was chosen."""
    classes = {
        device_class["metadata"]["name"]: device_class["spec"].get("config", ())
        for device_class in cluster.classes
    }
    users: dict[str, list[str]] = {}
    for chosen in picked:
        users.setdefault(chosen.body["deviceClassName"], []).append(chosen.name)
    results: list[Config] = [
        ("FromClass", tuple(names), config["opaque"])
        for name, names in users.items()
        for config in classes[name]
    ]
    for config in claim["spec"]["devices"].get("config", ()):
        names = config.get("requests", ())
        if any(item.named(names) for item in picked):
            results.append(("FromClaim", tuple(names), config["opaque"]))
    return results


def _wide(config: Config, picked: list[asked.Chosen]) -> Config:
    """Naming every request says the same as naming none."""
    source, names, opaque = config
    if all(chosen.named(names) for chosen in picked):
        return source, (), opaque
    return config


def _selector(raw: Raw | None) -> tuple[frozenset[Requirement], frozenset[Requirement]] | None:
    if raw is None:
        return None
    (term,) = raw["nodeSelectorTerms"]
    return _requirements(term, "matchFields"), _requirements(term, "matchExpressions")


def _requirements(term: Raw, key: str) -> frozenset[Requirement]:
    return frozenset(
        (entry["key"], entry["operator"], frozenset(entry.get("values", ())))
        for entry in term.get(key, ())
    )


def _due_selector(
    used: list[inventory.Placed], node: str
) -> tuple[frozenset[Requirement], frozenset[Requirement]] | None:
    """The node by name where a device is local or binds to it; else what all devices demand."""
    if any("nodeName" in placed.near or placed.raw.get("bindsToNode") for placed in used):
        return frozenset({("metadata.name", "In", frozenset({node}))}), frozenset()
    fields: frozenset[Requirement] = frozenset()
    expressions: frozenset[Requirement] = frozenset()
    for item in used:
        for term in item.near.get("nodeSelector", {}).get("nodeSelectorTerms", ()):
            fields |= _requirements(term, "matchFields")
            expressions |= _requirements(term, "matchExpressions")
    return (fields, expressions) if fields or expressions else None

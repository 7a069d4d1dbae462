"""The API server's rules that a shrunk or drawn scenario could break (K-1).

Not all of them: the drawn objects were put through the server's own validation as well.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.oracle import amounts, asked, inventory, scenarios

Raw = dict[str, Any]
_NEAR = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_PLAIN, _ADVANCED = 128, 64
_SOME, _ALTERNATIVES, _TOLERATIONS, _SETS, _CONDITIONS = 32, 8, 16, 8, 4


def problems(world: scenarios.World) -> list[str]:
    """Return what the API server would refuse, and claims in use of what is not there."""
    cluster = world.cluster
    classes = {device_class["metadata"]["name"] for device_class in cluster.classes}
    problems_value = [wrong for slice_ in cluster.slices for wrong in _slice(slice_)]
    claims = [*world.claims, *cluster.allocated]
    problems_value += [wrong for claim in claims for wrong in _claim(claim, classes)]
    problems_value += _names("claims", (claim["metadata"]["name"] for claim in claims))
    problems_value += _names("slices", (slice_["metadata"]["name"] for slice_ in cluster.slices))
    placements = inventory.Inventory(cluster).devices
    for claim in cluster.allocated:
        for entry in claim["status"]["allocation"]["devices"].get("results", ()):
            if (entry["driver"], entry["pool"], entry["device"]) not in placements:
                problems_value.append(
                    f"{claim['metadata']['name']} holds {entry['device']}, which is gone"
                )
    if not world.claims or not cluster.nodes:
        problems_value.append("nothing is asked")
    return problems_value


def _names(location: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"{location}: {name} is there twice"
        seen.add(name)


def _slice(entry: Raw) -> Iterator[str]:
    spec, name = entry["spec"], entry["metadata"]["name"]
    if sum(key in spec for key in _NEAR) != 1:
        yield f"{name}: not one of {_NEAR}"
    if "devices" in spec and "sharedCounters" in spec:
        yield f"{name}: devices and counters"
    devices = spec.get("devices", ())
    advanced = any("taints" in each or "consumesCounters" in each for each in devices)
    if len(devices) > (_ADVANCED if advanced else _PLAIN):
        yield f"{name}: {len(devices)} devices"
    yield from _names(name, (each["name"] for each in devices))
    if len(spec.get("sharedCounters", ())) > _SETS or spec.get("sharedCounters") == []:
        yield f"{name}: counter sets"
    for counters in spec.get("sharedCounters", ()):
        if not 0 < len(counters.get("counters", ())) <= _SOME:
            yield f"{name}: counters of {counters['name']}"
    for device in devices:
        yield from _device(device, bool(spec.get("perDeviceNodeSelection")))
    yield from _terms(spec)


def _terms(near: Raw) -> Iterator[str]:
    if "nodeSelector" not in near:
        return
    terms = near["nodeSelector"]["nodeSelectorTerms"]
    if len(terms) != 1:
        yield "node selector: not one term"
    for term in terms:
        for entry in (*term.get("matchFields", ()), *term.get("matchExpressions", ())):
            wants = entry["operator"] not in {"Exists", "DoesNotExist"}
            if wants != bool(entry.get("values")):
                yield f"node selector: values of {entry['key']}"


def _device(device: Raw, alone: bool) -> Iterator[str]:  # noqa: FBT001 - of its slice
    name = device["name"]
    if sum(key in device for key in _NEAR) != (1 if alone else 0):
        yield f"{name}: which nodes"
    yield from _terms(device)
    if len(device.get("attributes", ())) + len(device.get("capacity", ())) > _SOME:
        yield f"{name}: attributes and capacity"
    if any(len(value) != 1 for value in device.get("attributes", {}).values()):
        yield f"{name}: an attribute without one value"
    if len(device.get("consumesCounters", ())) > 2:
        yield f"{name}: counter sets"
    yield from (
        f"{name}: no counters"
        for entry in device.get("consumesCounters", ())
        if not entry["counters"]
    )
    if bool(device.get("bindingConditions")) != bool(device.get("bindingFailureConditions")):
        yield f"{name}: conditions of one kind only"
    for key, capacity in device.get("capacity", {}).items():
        yield from (f"{name} {key}: {text}" for text in _policy(device, capacity))


def _policy(device: Raw, capacity: Raw) -> Iterator[str]:
    policy = capacity.get("requestPolicy")
    if policy is None:
        return
    if not device.get("allowMultipleAllocations"):
        yield "a policy of a device that is not shared"
    values = policy.get("validValues")
    if (values is not None or "validRange" in policy) and "default" not in policy:
        yield "no default"
        return
    if values is not None and (not values or policy["default"] not in values):
        yield "default is not valid"
    if "validRange" in policy and "min" not in policy["validRange"]:
        yield "no min"
    elif "validRange" in policy and amounts.rounded(policy["default"], capacity) != amounts.number(
        policy["default"]
    ):
        yield "default is not in the range"


def _claim(claim: Raw, classes: set[str]) -> Iterator[str]:
    devices, name = claim["spec"]["devices"], claim["metadata"]["name"]
    requests: Sequence[Raw] = devices.get("requests", ())
    if not 0 < len(requests) <= _SOME:
        yield f"{name}: {len(requests)} requests"
    yield from _names(name, (request["name"] for request in requests))
    names: set[str] = set()
    for request in requests:
        bodies = asked.alternatives(request)
        names |= {request["name"], *(key for key, _ in bodies)}
        if not 0 < len(bodies) <= _ALTERNATIVES:
            yield f"{name}: {len(bodies)} alternatives"
        for key, body in bodies:
            yield from (f"{name} {key}: {text}" for text in _body(body, classes))
    for entry in (*devices.get("constraints", ()), *devices.get("config", ())):
        if not set(entry.get("requests", ())) <= names or entry.get("requests") == []:
            yield f"{name}: names in {entry}"
    for entry in devices.get("constraints", ()):
        if ("matchAttribute" in entry) == ("distinctAttribute" in entry):
            yield f"{name}: constraint {entry}"
    yield from (f"{name}: config" for item in devices.get("config", ()) if "opaque" not in item)


def _body(body: Mapping[str, Any], classes: set[str]) -> Iterator[str]:
    if body.get("deviceClassName") not in classes:
        yield f"class {body.get('deviceClassName')}"
    everything = body.get("allocationMode") == "All"
    if everything == ("count" in body) or body.get("count", 1) < 1:
        yield "count"
    if len(body.get("tolerations", ())) > _TOLERATIONS or len(body.get("selectors", ())) > _SOME:
        yield "too many"
    for entry in body.get("tolerations", ()):
        exists = entry.get("operator") == "Exists"
        if entry.get("operator") not in {"Exists", "Equal"} or (exists and "value" in entry):
            yield f"toleration {entry}"

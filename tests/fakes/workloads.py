"""Random pods with claims over every face and every configuration, as people might write them."""

import random  # noqa: TID251 - the same every time
from dataclasses import dataclass
from typing import Any

from driver import names
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.resources.dra import device_classes as dra_device_classes
from hack.chart import helm
from tests.support.builders import objects

Raw = dict[str, Any]
NAMESPACES = ("team-a", "team-b")
GPU, MIG = names.CLASS_GPU, "gpu-mig.ration.dev"
MPS, TURNS = "gpu-mps.ration.dev", "gpu-timeslice.ration.dev"
SLICE = "gpu-slice.ration.dev"
OPEN = "open-mps.example.com"
"""A class whose claims may meet those of other namespaces."""
PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A pod and its claims, not yet allocated."""

    pod: pods.Pod
    claims: tuple[claims.Claim, ...]


def device_classes() -> list[dra_device_classes.DeviceClass]:
    """Return those that are installed, and one that lets namespaces meet."""
    classes = [dra_device_classes.parse(entry) for entry in helm.usual("DeviceClass")]
    mps = next(device_class for device_class in classes if device_class.name == MPS)
    opened = {"apiVersion": names.CONFIG_VERSION, "kind": "GpuConfig", "crossNamespace": True}
    config = {"driver": names.DRIVER, "parameters": opened}
    return [*classes, dra_device_classes.DeviceClass(OPEN, mps.selectors, (config,))]


def draw(rng: random.Random, number: int) -> Drawn:
    """The pod of that number, with one to three claims and one to two containers."""
    namespace = rng.choice(NAMESPACES)
    created = [
        _claim(rng, f"pod-{number}-{index}", namespace) for index in range(rng.choice([1, 1, 2, 3]))
    ]
    used = [{"name": entry["metadata"]["name"]} for entry in created]
    containers = [{"name": "main", "resources": {"claims": used}}]
    if rng.random() < 0.4:
        containers = [
            {"name": f"c{index}", "resources": {"claims": [entry]}}
            for index, entry in enumerate(used)
        ]
    entries = [{"name": entry["name"], "resourceClaimName": entry["name"]} for entry in used]
    raw = objects.a_pod(f"pod-{number}", containers=containers, resourceClaims=entries)
    raw["metadata"]["namespace"] = namespace
    return Drawn(pods.parse(raw), tuple(claims.parse(entry) for entry in created))


def _claim(rng: random.Random, name: str, namespace: str) -> Raw:
    requests = [_request(rng, f"r{index}") for index in range(rng.choice([1, 1, 1, 2]))]
    claim = objects.a_claim(name, *requests, config=_configs(rng, requests))
    claim["metadata"]["namespace"] = namespace
    if len(requests) == 1 and rng.random() < 0.2:
        attribute = rng.choice([names.ATTR_NUMA_NODE, f"{names.DRIVER}/productName"])
        claim["spec"]["devices"]["constraints"] = [{"matchAttribute": attribute}]
    return claim


def _request(rng: random.Random, name: str) -> Raw:
    if rng.random() < 0.15:
        ways = [{"name": f"s{index}", **_body(rng)} for index in range(2)]
        return {"name": name, "firstAvailable": ways}
    return {"name": name, "exactly": _body(rng)}


def _body(rng: random.Random) -> Raw:
    chosen = rng.choice([GPU, GPU, MIG, MIG, MPS, MPS, MPS, TURNS, TURNS, OPEN, SLICE, SLICE])
    body: Raw = {"deviceClassName": chosen, "count": rng.choice([1, 1, 1, 2, 3])}
    if chosen == MIG:
        text = f'device.attributes["{names.DRIVER}"].profile == "{rng.choice(PROFILES)}"'
        body["selectors"] = [{"cel": {"expression": text}}]
    elif chosen == GPU:
        body["count"] = rng.choice([1, 1, 2, 4])
    elif rng.random() < 0.8:
        request = {"memory": f"{rng.choice([1, 5, 10, 20, 33])}Gi"}
        if rng.random() < 0.5:
            request["compute"] = str(rng.choice([5, 10, 25, 50]))
        body["capacity"] = {"requests": request}
    return body


def _configs(rng: random.Random, request: list[Raw]) -> list[Raw]:
    by_need = SLICE in str(request) and rng.random() < 0.6
    results = [_entry({"apiVersion": names.CONFIG_VERSION, **_need(rng)})] if by_need else []
    if rng.random() < 0.4:
        return results
    for_one = [rng.choice(request)["name"]] if rng.random() < 0.3 else []
    entry = _entry(_config(rng))
    return [*results, {**entry, "requests": for_one} if for_one else entry]


def _entry(parameters: Raw) -> Raw:
    return {"opaque": {"driver": names.DRIVER, "parameters": parameters}}


def _need(rng: random.Random) -> Raw:
    return {"kind": "SliceConfig", "isolation": rng.choice(["hardware", "limits", "none", "none"])}


def _config(rng: random.Random) -> Raw:
    turns = {"interval": rng.choice(["Default", "Short", "Long"])}
    mps: Raw = {"multiUser": True} if rng.random() < 0.3 else {}
    limits: list[Raw] = [{}, {"pinnedMemory": "4Gi"}, {"pinnedMemoryPerDevice": {"0": "2Gi"}}]
    limit = rng.choice(limits)
    drawn: list[Raw] = [
        {"kind": "GpuConfig"},
        {"kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing", "timeSlicing": turns}},
        {"kind": "GpuConfig", "sharing": {"strategy": "MPS", "mps": mps}},
        {"kind": "GpuConfig", "sharing": {"strategy": "MPS", "mps": {**mps, **limit}}},
        {"kind": "MigDeviceConfig"},
        {"kind": "MigDeviceConfig", "sharing": {"strategy": "MPS", "mps": limit}},
        _need(rng),
    ]
    return {"apiVersion": names.CONFIG_VERSION, **rng.choice(drawn)}

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
    found = [dra_device_classes.parse(one) for one in helm.usual("DeviceClass")]
    mps = next(one for one in found if one.name == MPS)
    opened = {"apiVersion": names.CONFIG_VERSION, "kind": "GpuConfig", "crossNamespace": True}
    config = {"driver": names.DRIVER, "parameters": opened}
    return [*found, dra_device_classes.DeviceClass(OPEN, mps.selectors, (config,))]


def draw(rng: random.Random, number: int) -> Drawn:
    """The pod of that number, with one to three claims and one to two containers."""
    namespace = rng.choice(NAMESPACES)
    made = [_claim(rng, f"pod-{number}-{at}", namespace) for at in range(rng.choice([1, 1, 2, 3]))]
    used = [{"name": one["metadata"]["name"]} for one in made]
    containers = [{"name": "main", "resources": {"claims": used}}]
    if rng.random() < 0.4:
        containers = [
            {"name": f"c{at}", "resources": {"claims": [one]}} for at, one in enumerate(used)
        ]
    entries = [{"name": one["name"], "resourceClaimName": one["name"]} for one in used]
    raw = objects.a_pod(f"pod-{number}", containers=containers, resourceClaims=entries)
    raw["metadata"]["namespace"] = namespace
    return Drawn(pods.parse(raw), tuple(claims.parse(one) for one in made))


def _claim(rng: random.Random, name: str, namespace: str) -> Raw:
    asked = [_request(rng, f"r{at}") for at in range(rng.choice([1, 1, 1, 2]))]
    found = objects.a_claim(name, *asked, config=_configs(rng, asked))
    found["metadata"]["namespace"] = namespace
    if len(asked) == 1 and rng.random() < 0.2:
        attribute = rng.choice([names.ATTR_NUMA_NODE, f"{names.DRIVER}/productName"])
        found["spec"]["devices"]["constraints"] = [{"matchAttribute": attribute}]
    return found


def _request(rng: random.Random, name: str) -> Raw:
    if rng.random() < 0.15:
        ways = [{"name": f"s{at}", **_body(rng)} for at in range(2)]
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
        asked = {"memory": f"{rng.choice([1, 5, 10, 20, 33])}Gi"}
        if rng.random() < 0.5:
            asked["compute"] = str(rng.choice([5, 10, 25, 50]))
        body["capacity"] = {"requests": asked}
    return body


def _configs(rng: random.Random, asked: list[Raw]) -> list[Raw]:
    by_need = SLICE in str(asked) and rng.random() < 0.6
    found = [_entry({"apiVersion": names.CONFIG_VERSION, **_need(rng)})] if by_need else []
    if rng.random() < 0.4:
        return found
    for_one = [rng.choice(asked)["name"]] if rng.random() < 0.3 else []
    entry = _entry(_config(rng))
    return [*found, {**entry, "requests": for_one} if for_one else entry]


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

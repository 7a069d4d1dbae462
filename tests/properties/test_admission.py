"""The webhook says of a configuration what the node's plugin would say of it (D13, D20)."""

import collections
import copy
import random  # noqa: TID251 - a generator of its own, seeded
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from driver import errors, ids, names
from driver.api import decode
from driver.devices import faces
from driver.kubeletplugin import ports
from driver.kubeletplugin.plan import config as plan_config
from driver.kubeletplugin.plan import steps
from driver.resources.dra import claims, device_classes
from driver.resources.sharing import allocation_config
from driver.webhook import admission_review
from driver.webhook.validation import claims as validation_claims
from driver.webhook.validation import configs, hardware
from hack.chart import helm
from tests.support.builders import gpus, objects

Raw = dict[str, Any]
DOCUMENTS = 10_000
GPUS = [
    replace(
        gpus.a_gpu(),
        uuid=ids.GpuUuid(f"GPU-{index}"),
        pci=ids.PciAddress(f"0000:{index + 1:02}:00.0"),
    )
    for index in range(4)
]
MEMORY = gpus.PLAIN.memory_bytes or 0
HARDWARE = hardware.Hardware(MEMORY, gpus.EIGHTH.memory_bytes)
CLASSES = {
    device_class.name: device_class
    for device_class in map(device_classes.parse, helm.usual("DeviceClass"))
}
KINDS = {
    "gpu.ration.dev": faces.WholeFace,
    "gpu-mig.ration.dev": faces.MigFace,
    "gpu-mps.ration.dev": faces.ShareFace,
    "gpu-timeslice.ration.dev": faces.ShareFace,
}
SLICE = "gpu-slice.ration.dev"
LIMITS = [
    {"pinnedMemory": "4Gi"},
    {"pinnedMemory": "500Gi"},
    {"pinnedMemory": "12k"},
    {"activeThreadPercentage": 30},
    {"pinnedMemoryPerDevice": {"0": "1Gi"}},
    {"pinnedMemoryPerDevice": {"1": "2Gi", "0": "1Gi"}},
    {"pinnedMemoryPerDevice": {"GPU-1": "1Gi"}},
    {"multiUser": True, "priority": "BelowNormal", "maxConnections": 4},
    {},
]
THEIRS = [
    {"defaultActiveThreadPercentage": 0, "defaultPinnedDeviceMemoryLimit": "1Gi"},
    {"defaultPerDevicePinnedMemoryLimit": {"0": "2Gi"}},
    {"multiUser": True},
]
ODD: list[Any] = [
    None,
    "",
    "x",
    0,
    1,
    -1,
    101,
    True,
    1.5,
    [],
    {},
    [{}],
    {"a": 1},
    "MPS",
    "1Gi",
    "GpuConfig",
]


class Drawing:
    """Claims with configuration, right and wrong ones, by one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secret

    def classes(self) -> dict[str, device_classes.DeviceClass]:
        """Return those that are installed; some bring a document of their own."""
        return {
            name: replace(device_class, configs=(*device_class.configs, *self._of_class()))
            for name, device_class in CLASSES.items()
        }

    def _of_class(self) -> Iterator[Raw]:
        if self._random.random() < 0.2:
            parameters = self._parameters()
            if self._random.random() < 0.3:
                parameters = {**parameters, "crossNamespace": True}
            if self._random.random() < 0.1:
                parameters = self._mutated(parameters)
            yield {"driver": names.DRIVER, "parameters": parameters}

    def claim(self) -> Raw:
        several = self._random.choice((1, 1, 1, 2, 3))
        requests = [self._request(f"r{index}") for index in range(several)]
        entries = [self._entry(requests) for _ in range(self._random.choice((1, 1, 1, 2, 3)))]
        return objects.a_claim("one", *requests, config=entries)

    def _request(self, name: str) -> Raw:
        device_class = self._random.choice(sorted(CLASSES))
        return objects.a_request(name, self._random.choice((1, 1, 2)), deviceClassName=device_class)

    def _entry(self, requests: list[Raw]) -> Raw:
        parameters = self._parameters()
        for _ in range(self._random.choice((0, 0, 0, 1, 2))):
            parameters = self._mutated(parameters)
        driver = self._random.choice((names.DRIVER,) * 9 + ("other.dev",))
        entry: Raw = {"opaque": {"driver": driver, "parameters": parameters}}
        if self._random.random() < 0.4:
            entry["requests"] = [self._random.choice(requests)["name"]]
        return entry

    def _parameters(self) -> Raw:
        kind = self._random.choice(("GpuConfig",) * 4 + ("MigDeviceConfig",) * 2 + ("SliceConfig",))
        if kind == "SliceConfig":
            isolation = self._random.choice(("hardware", "limits", "none"))
            return {"apiVersion": names.CONFIG_VERSION, "kind": kind, "isolation": isolation}
        theirs = self._random.random() < 0.25
        version = "resource.nvidia.com/v1beta1" if theirs else names.CONFIG_VERSION
        result: Raw = {"apiVersion": version, "kind": kind}
        sharing = self._theirs() if theirs else self._ours()
        return result if sharing is None else {**result, "sharing": sharing}

    def _ours(self) -> Raw | None:
        interval = self._random.choice(("Default", "Long"))
        mps = copy.deepcopy(self._random.choice(LIMITS))
        sliced = {"strategy": "TimeSlicing", "timeSlicing": {"interval": interval}}
        return self._random.choice((None, sliced, {"strategy": "MPS", "mps": mps}))

    def _theirs(self) -> Raw | None:
        mps = copy.deepcopy(self._random.choice(THEIRS))
        sliced = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Short"}}
        return self._random.choice((None, sliced, {"strategy": "MPS", "mpsConfig": mps}))

    def _mutated(self, document: Raw) -> Raw:
        copied = copy.deepcopy(document)
        places = list(_places(copied))
        inside, key = self._random.choice(places)
        match self._random.randrange(4):
            case 0:
                del inside[key]
            case 1:
                inside[key] = self._random.choice(ODD)
            case 2:
                added = ("crossNamespace", "mpsConfig", "interval", "sharing", "bogus")
                inside[self._random.choice(added)] = self._random.choice(ODD)
            case _:
                inside[f"{key}s"] = inside.pop(key)
        return copied


def _places(value: Any) -> Iterator[tuple[Raw, str]]:
    if isinstance(value, dict):
        for key in list(value):
            yield value, key
            yield from _places(value[key])


def granted(
    claim: Raw, read: Sequence[decode.Document]
) -> Iterator[tuple[claims.Result, faces.Face]]:
    """Devices of a node with four GPUs, as an allocator would give them."""
    free = [list(faces.offered_faces(gpu, faces.Offering())) for gpu in GPUS]
    index = 0
    for request in claim["spec"]["devices"]["requests"]:
        device_class = request["exactly"]["deviceClassName"]
        for _ in range(request["exactly"]["count"]):
            may_be = [f for f in free[index % 4] if _is_of(f, device_class)]
            index += 1
            grants = [_result(request["name"], face) for face in may_be]
            yield next((grant for grant in grants if not _refused([grant], read)), grants[0])


def _result(request: str, face: faces.Face) -> tuple[claims.Result, faces.Face]:
    return claims.Result(request, claims.DeviceId(names.DRIVER, "node-1", face.name)), face


def _refused(
    results: Sequence[tuple[claims.Result, faces.Face]], read: Sequence[decode.Document]
) -> bool:
    grants = [steps.Grant(result.request, "node-1", face) for result, face in results]
    answer = plan_config.resolve_configs(grants, [result for result, _ in results], read, "default")
    return isinstance(answer, ports.Refused)


def _is_of(face: faces.Face, device_class: str) -> bool:
    if device_class == SLICE:
        return isinstance(face, faces.MigFace | faces.ShareFace)
    if isinstance(face, faces.ShareFace):
        expected = device_class == "gpu-mps.ration.dev"
        return KINDS[device_class] is faces.ShareFace and expected == (
            face.sharing is faces.Sharing.MPS
        )
    return type(face) is KINDS[device_class]


def of_classes(
    claim: Raw, fields: dict[str, device_classes.DeviceClass]
) -> list[claims.AllocatedConfig]:
    """Return what classes bring into an allocation, each for the request that names it."""
    return [
        claims.AllocatedConfig(from_class=True, requests=(request["name"],), opaque=opaque)
        for request in claim["spec"]["devices"]["requests"]
        for opaque in fields[request["exactly"]["deviceClassName"]].configs
    ]


def refused_by_plugin(claim: Raw, fields: dict[str, device_classes.DeviceClass]) -> bool:
    """Return Prepare's verdict on an allocation that takes the configuration over."""
    brought = of_classes(claim, fields)
    brought += [
        claims.AllocatedConfig(
            from_class=False, requests=tuple(entry.get("requests", ())), opaque=entry["opaque"]
        )
        for entry in claim["spec"]["devices"]["config"]
    ]
    allocation = claims.Allocation((), tuple(brought))
    try:
        read = tuple(allocation_config.allocation_configs(allocation, names.DRIVER))
    except errors.BadInput:
        return True
    return _refused([*granted(claim, read)], read)


def test_the_webhook_refuses_what_the_plugin_refuses_and_nothing_else() -> None:
    kind = admission_review.ObjectKind("resource.k8s.io", "v1", "ResourceClaim")
    seen: collections.Counter[tuple[bool, bool]] = collections.Counter()
    for seed in range(DOCUMENTS):
        drawing = Drawing(seed)
        claim, installed = drawing.claim(), drawing.classes()
        findings = validation_claims.check(
            kind, claim, configs.ClusterFacts(names.DRIVER, installed, HARDWARE)
        )
        statement, refused = bool(findings.problems), refused_by_plugin(claim, installed)
        seen[refused, bool(findings.warnings)] += 1
        assert refused or not statement, (seed, findings)
        assert statement or findings.warnings or not refused, (seed, claim)
    assert min(seen[True, False], seen[False, False]) > DOCUMENTS / 10, seen
    assert seen[True, True] + seen[False, True] < DOCUMENTS / 4, seen


def test_the_webhook_and_the_plugin_agree_on_each_document() -> None:
    """Compare claims, templates and classes by the reading of their documents alone."""
    seen: collections.Counter[bool] = collections.Counter()
    for seed in range(DOCUMENTS):
        (entry, *_) = Drawing(seed).claim()["spec"]["devices"]["config"]
        for kind, obj in (
            ("ResourceClaim", {"spec": {"devices": {"config": [entry]}}}),
            ("ResourceClaimTemplate", {"spec": {"spec": {"devices": {"config": [entry]}}}}),
            ("DeviceClass", {"spec": {"config": [{"opaque": entry["opaque"]}]}}),
        ):
            of_class = kind == "DeviceClass"
            config = claims.AllocatedConfig(of_class, (), entry["opaque"])
            refused = not is_read(claims.Allocation((), (config,)))
            object_kind = admission_review.ObjectKind("resource.k8s.io", "v1", kind)
            statement = bool(
                validation_claims.check(object_kind, obj, configs.ClusterFacts()).problems
            )
            assert statement == refused, (seed, kind, entry)
            seen[refused] += 1
    assert min(seen.values()) > DOCUMENTS / 2, seen


def is_read(allocation: claims.Allocation) -> bool:
    try:
        tuple(allocation_config.allocation_configs(allocation, names.DRIVER))
    except errors.BadInput:
        return False
    return True

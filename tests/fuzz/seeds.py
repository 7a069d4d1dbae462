"""Seeds of fuzzing: accepted inputs of the decoders, and past failures."""

import functools
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driver import names
from driver.api import nvidia
from driver.webhook import admission_review
from tests.support.builders import objects as made

DATA = Path(__file__).parents[1] / "data"
Raw = dict[str, Any]
_GROUP = "resource.k8s.io"


def _json(*results: Any) -> list[bytes]:
    return [json.dumps(result).encode() for result in results]


def configs() -> Sequence[bytes]:
    ours = {"apiVersion": names.CONFIG_VERSION, "kind": "GpuConfig"}
    theirs = {"apiVersion": nvidia.VERSION, "kind": "GpuConfig"}
    mps = {"pinnedMemory": "4Gi", "activeThreadPercentage": 30, "multiUser": True}
    per_device = {"pinnedMemoryPerDevice": {"0": "1Gi"}, "priority": "BelowNormal"}
    limits = {"defaultPinnedDeviceMemoryLimit": "1Gi", "defaultActiveThreadPercentage": 50}
    sliced = {"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}}
    return _json(
        ours,
        {**ours, "crossNamespace": True, "sharing": sliced},
        {**ours, "sharing": {"strategy": "MPS", "mps": mps}},
        {**ours, "kind": "MigDeviceConfig", "sharing": {"strategy": "MPS", "mps": per_device}},
        {**ours, "kind": "SliceConfig", "isolation": "limits"},
        {**theirs, "sharing": {"strategy": "MPS", "mpsConfig": limits}},
        {**theirs, "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {}}},
        {**theirs, "kind": "MigDeviceConfig", "sharing": {"strategy": "TimeSlicing"}},
    )


def _document(kind: str, **body: Any) -> Raw:
    return {"apiVersion": names.CONFIG_VERSION, "kind": kind, **body}


def shapes() -> Sequence[bytes]:
    entry = {
        "name": "h100-8",
        "labels": {"node.kubernetes.io/instance-type": "p5.48xlarge"},
        "taints": [{"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}],
        "gpus": 8,
        "product": "NVIDIA H100 80GB HBM3",
        "memory": "80Gi",
        "allocatable": {"cpu": "190", "memory": "1900Gi"},
        "cost": 8.5,
        "startup": "6m",
        "maxInFlight": 4,
    }
    other = {"name": "l4", "labels": {"example.com/pool": "l4"}, "gpus": 1}
    text = b"kind: NodeShapes\nttl: 20m\nshapes: [{name: a, labels: {x/y: z}, gpus: 1, cost: 2}]\n"
    whole = _document("NodeShapes", ttl="1h30m", maxInFlight=16, shapes=[entry, other])
    return [text, *_json(whole, {"shapes": [other]})]


def workloads() -> Sequence[bytes]:
    results = [{"gpus": 8, "cpu": 64, "weight": 3}, {"face": "mps", "percent": 25, "cpu": "500m"}]
    text = (
        b"workloads:\n- {gpus: 1, products: [NVIDIA H100 80GB HBM3], cpu: 0.5}\n- {weight: 0.5}\n"
    )
    return [text, *_json(_document("WorkloadMix", workloads=results))]


def drivers() -> Sequence[bytes]:
    results = [
        {"name": "gpu.example.com", "nodeSelector": "team in (a, b),!spot"},
        {"name": "nic.example.com", "pools": ["node-a", "rack/switch"]},
    ]
    text = b"drivers:\n- name: gpu.example.com\n- {name: b, pools: [c], nodeSelector: d=e}\n"
    return [text, *_json(_document("ManagedDrivers", drivers=results))]


def offerings() -> Sequence[bytes]:
    rules = [
        {"timeSlices": 10, "memoryFactor": 1.5},
        {"nodes": ["train-*"], "gpus": {"product": ["*H100*"], "index": [0]}, "faces": ["whole"]},
        {"mig": "static", "mpsShares": 4, "memoryFactor": "2"},
    ]
    text = b"rules:\n- timeSlices: 10\n- nodes: ['train-*']\n  faces: [whole, mig]\n"
    return [text, *_json(_document("NodeOfferings", rules=rules))]


def records() -> Sequence[bytes]:
    """Whole files, and the records in them, which get a checksum that fits."""
    files = [path.read_bytes() for path in sorted((DATA / "records").glob("*.json"))]
    inside = [json.dumps(json.loads(file)["record"]).encode() for file in files]
    return [*files, *inside]


def specs() -> Sequence[bytes]:
    return [path.read_bytes() for path in sorted((DATA / "cdi").glob("*.json"))]


def mps_files() -> Sequence[bytes]:
    gpu = "GPU-15940be9-4fef-54cf-a498-ab327b8fb033"
    desired = {"key": "one", "version": 1, "devices": [gpu], "pinned_memory": [1 << 30]}
    status = {
        "key": "one",
        "version": 1,
        "state": "ready",
        "boot_id": "b",
        "since": "2026-11-21",
        "pipe_dir": "/p",
        "log_dir": "/l",
        "pid": 7,
        "processes": [{"pid": 1, "started": 2}],
    }
    more = {"multi_user": True, "shm_bytes": 1 << 30, "active_thread_percentage": 50}
    return _json(desired, {**desired, **more}, status)


def quantities() -> Sequence[bytes]:
    texts = ("80Gi", "1500m", "1e3", "-0.5", "+.5Ki", "1.", "100n", "8E", "9.5Ei", "0", "1E-9")
    return [text.encode() for text in texts]


@functools.cache
def selectors() -> Sequence[bytes]:
    """The expressions that kube-scheduler's own evaluator and ours are compared by."""
    bodies: list[bytes] = []
    for path in sorted((DATA / "selectors").glob("*.txt")):
        lines = path.read_bytes().splitlines()
        bodies += [line for line in lines if line and not line.startswith(b"#")]
    return bodies


def objects() -> Sequence[bytes]:
    share = made.a_share_device("gpu-0-ts", taints=[{"key": "a", "effect": "NoSchedule"}])
    counted = made.drawing("gpu-1", "gpu-1", memory="80Gi")
    result = made.a_share("gpu-0-ts", memory="8Gi")
    claim = made.a_claim(
        "one",
        made.a_request("a", 2, 'device.driver == "x"', tolerations=[{"operator": "Exists"}]),
        made.first_available("b", made.a_way("c"), made.a_way("d", 2)),
        config=[made.a_config("GpuConfig", "a")],
        constraints=[made.matching("ration.dev/x", "a"), made.differing("ration.dev/y")],
        status=made.allocated("n", "gpu-0", result, reserved=[{"resource": "pods", "name": "p"}]),
    )
    pod = made.a_pod("p", "a", status=made.refused(), priority=5, nodeSelector={"a": "b"})
    holder = {"for": {"pod": "p", "uid": "u"}, "ttl": "5m", "evicting": []}
    queue = {"metadata": made.meta("q", None), "spec": {"parent": "p", "limit": {"gpus": 4}}}
    by_name = {
        "ResourceSlice": made.a_slice("n", [made.a_device("gpu-1"), share, counted]),
        "ResourceClaim": claim,
        "DeviceClass": made.a_class(config=[made.a_config()]),
        "Pod": pod,
        "Node": made.a_node("n", taints=[{"key": "k", "effect": "NoSchedule"}]),
        "Queue": queue,
        "Reservation": {"metadata": made.meta("r"), "spec": holder},
    }
    return _json(*({"kind": kind, **entry} for kind, entry in by_name.items()))


def reviews() -> Sequence[bytes]:
    def of(obj: Raw, group: str, kind: str, version: str = "v1") -> Raw:
        request = {
            "uid": "1",
            "kind": {"group": group, "version": version, "kind": kind},
            "operation": "CREATE",
            "namespace": "default",
            "object": obj,
        }
        return {
            "apiVersion": admission_review.API_VERSION,
            "kind": "AdmissionReview",
            "request": request,
        }

    asking = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    claim = made.a_claim("one", config=[made.a_config("GpuConfig", "gpu")])
    template = {"metadata": made.meta("t"), "spec": {"spec": claim["spec"]}}
    return _json(
        of(claim, _GROUP, "ResourceClaim"),
        of(template, _GROUP, "ResourceClaimTemplate", "v1beta1"),
        of(made.a_class(config=[made.a_config()]), _GROUP, "DeviceClass"),
        of({"metadata": {}, "spec": {"containers": [asking]}}, "", "Pod"),
    )


def seen() -> Sequence[bytes]:
    """Documents, compressed and not: the target tries each as both."""
    spec = made.a_slice("n", [made.a_device("gpu-1")])["spec"]
    entry = {key: spec[key] for key in ("driver", "devices")} | {"pool": {"resourceSliceCount": 1}}
    document = {
        "version": 1,
        "gpus": 1,
        "allocatable": {"cpu": 8000, "pods": 110},
        "startsSeconds": [60.5],
        "slices": [{**entry, "sharedCounters": []}],
    }
    plain = json.dumps(document).encode()
    return [plain, gzip.compress(plain, mtime=0)]

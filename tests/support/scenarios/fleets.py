"""A small fleet at work, as raw API objects: every mode, every health, pods that wait, queues.

What is drawn of it is compared text for text, so nothing of it depends on the day.
"""

import base64
import copy
import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from driver import names
from driver.cli.simulation import dump
from driver.cli.sources import local, node_shapes
from driver.devices import faces
from driver.resources import queues, reservations
from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from driver.scheduling.provisioning import observed_shapes
from driver.scheduling.reports import catalog, read_model
from driver.scheduling.reports.documents import local_explanation
from hack.chart import helm
from tests.fakes import simulated_pool
from tests.support.builders import objects, shapes

HOME = "ration-system"
AT = "2026-11-22T12:00:00Z"
_BORN = "2026-11-22T09:00:00Z"
_XID = slices.Taint(names.TAINT_XID, "79", "NoSchedule")
_CORDON = slices.Taint(names.CORDONED_TAINT, "", "NoSchedule")
Raw = dict[str, Any]


def gpu(node: str, index: int) -> str:
    """The name of a GPU by its place on the node."""
    return simulated_pool.of_machine(node, "controller").groups[index].name


def _slices(node: str, allocator: str, ailing: Mapping[int, slices.Taint]) -> list[Raw]:
    pool = simulated_pool.of_machine(node, allocator)
    sick = {pool.groups[index].name: taint for index, taint in ailing.items()}
    owner = slice_builder.Owner(simulated_pool.node_name(node), objects.uid_of(node))
    created: list[Raw] = [dict(entry) for entry in slice_builder.render(pool, owner, 1)]
    for obj in created:
        obj["metadata"] = {**obj["metadata"], "resourceVersion": "1"}
        for device in obj["spec"].get("devices", ()):
            taint = sick.get(faces.gpu_name(device["name"]) or device["name"])
            if taint is not None:
                document = {"key": taint.key, "value": taint.value, "effect": taint.effect}
                device["taints"] = [*device["taints"], {**document, "timeAdded": _BORN}]
    return created


def _node(name: str, *, cordoned: bool = False, ready: bool = True) -> Raw:
    node = objects.a_node(name, **({"unschedulable": True} if cordoned else {}))
    node["status"]["allocatable"] |= {"cpu": "64", "memory": "512Gi"}
    node["status"]["conditions"] = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"apiVersion": "v1", "kind": "Node", **node}


def _pod(namespace: str, name: str, claim: str, **more: Any) -> Raw:
    status = more.pop("status", {})
    labels = more.pop("labels", {})
    owner = more.pop("owner", None)
    pod = objects.a_pod(name, claim, **more)
    owners = [{**owner, "uid": objects.uid_of(owner["name"]), "controller": True}] if owner else []
    pod["metadata"] |= {
        "namespace": namespace,
        "labels": labels,
        "ownerReferences": owners,
        "creationTimestamp": _BORN,
    }
    pod["status"] |= status
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def _use(busy: str, percent: int, peak: str) -> Raw:
    return {"lastBusy": busy, "utilization": percent, "peakMemory": peak}


def _claim(
    key: str, node: str, devices: Iterable[Raw], request: Raw, data: Raw | None = None
) -> Raw:
    namespace, _, name = key.partition("/")
    held = [*devices]
    user = {"resource": "pods", "name": name, "uid": objects.uid_of(name)}
    status = objects.allocated(
        node, *held, reserved=[user], allocationTimestamp="2026-11-22T09:00:05Z"
    )
    ready = {
        "type": names.CONDITION_READY,
        "status": "True",
        "reason": "Prepared",
        "message": "",
        "lastTransitionTime": "2026-11-22T09:00:06Z",
    }
    status["devices"] = [
        {
            "driver": names.DRIVER,
            "pool": node,
            "device": entry["device"],
            **({"shareID": entry["shareID"]} if "shareID" in entry else {}),
            "conditions": [ready],
            **({"data": data} if data else {}),
        }
        for entry in held
    ]
    claim = objects.a_claim(name, request, status=status, namespace=namespace)
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **claim}


def _pending(namespace: str, name: str, request: Raw) -> Raw:
    claim = objects.a_claim(name, request, namespace=namespace)
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **claim}


def _running(node: str) -> Raw:
    return {"nodeName": node, "status": {"phase": "Running"}}


def _waits(reason: str, message: str) -> Raw:
    """Return a pending status of the controller, after kube-scheduler found no node."""
    condition = {
        "type": names.CONDITION_ALLOCATED,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-22T09:00:01Z",
    }
    return {"conditions": [*objects.refused()["conditions"], condition]}


def _queue(name: str, status: Raw, **spec: Any) -> Raw:
    meta = objects.meta(name, None, creationTimestamp=_BORN, generation=1)
    return {
        "apiVersion": "ration.dev/v1alpha1",
        "kind": "Queue",
        "metadata": meta,
        "spec": spec,
        "status": status,
    }


def _stands(has: str, fair: str, borrowed: str, waiting: int = 0, **more: Any) -> Raw:
    return {
        "allocated": has,
        "fairShare": fair,
        "deserved": more.pop("deserved", "8"),
        "borrowed": borrowed,
        "waiting": waiting,
        "memory": more.pop("memory", "0"),
        "compute": more.pop("compute", "0%"),
        **more,
    }


def _of_class(name: str, count: int = 1, **amounts: str) -> Raw:
    more: Raw = {"capacity": {"requests": amounts}} if amounts else {}
    return objects.a_request("gpu", count, deviceClassName=name, **more)


def _work() -> list[Raw]:
    name, shared, sliced, cut = (gpu("gpu-1", entry) for entry in (0, 2, 3, 4))
    other = gpu("gpu-1", 1)
    busy = _use("2026-11-22T11:59:58Z", 93, "72Gi")
    return [
        _claim(
            "vision/train",
            "gpu-1",
            [{"device": name}, {"device": other}],
            _of_class(names.CLASS_GPU, 2),
            busy,
        ),
        _claim(
            "nlp/serve",
            "gpu-1",
            [objects.a_share(f"{shared}-mps", 1, memory="20Gi", compute="25", shares="1")],
            _of_class("gpu-mps.ration.dev", memory="20Gi"),
            _use("2026-11-22T11:59:50Z", 17, "11Gi"),
        ),
        _claim(
            "nlp/rank",
            "gpu-1",
            [objects.a_share(f"{shared}-mps", 2, memory="40Gi", compute="50", shares="1")],
            _of_class("gpu-mps.ration.dev", memory="40Gi"),
            _use("2026-11-22T09:30:00Z", 0, "6Gi"),
        ),
        _claim(
            "dev/notebook",
            "gpu-1",
            [objects.a_share(f"{sliced}-ts", 3, memory="10Gi", compute="12", shares="1")],
            _of_class(names.CLASS_TIMESLICE),
            _use("2026-11-22T09:10:00Z", 0, "1Gi"),
        ),
        _claim(
            "batch/small",
            "gpu-1",
            [{"device": f"{cut}-mig-1g10gb-2"}],
            _of_class(names.CLASS_MIG),
        ),
        _claim(
            "batch/half",
            "gpu-1",
            [{"device": f"{cut}-mig-3g40gb-4"}],
            _of_class(names.CLASS_MIG),
        ),
        _pod(
            "vision", "train", "train", owner={"kind": "Job", "name": "train"}, **_running("gpu-1")
        ),
        _pod("nlp", "serve", "serve", **_running("gpu-1")),
        _pod("nlp", "rank", "rank", **_running("gpu-1")),
        _pod("dev", "notebook", "notebook", **_running("gpu-1")),
        _pod("batch", "small", "small", **_running("gpu-1")),
        _pod("batch", "half", "half", **_running("gpu-1")),
    ]


def _line() -> list[Raw]:
    """Return what waits."""
    big = (
        "No node fits. gpu-1: 1 of 9 devices fit, 8 lacking (5 CountersExhausted, 2 DeviceTainted)"
        "; gpu-2: 8 of 9 devices fit, 1 lacking. Needs 9 GPUs of one node; no node has more than 8"
    )
    return [
        _pending("nlp", "big", _of_class(names.CLASS_GPU, 9)),
        _pod("nlp", "big", "big", status=_waits("NoFit", big)),
        _pending("batch", "gated", _of_class(names.CLASS_GPU)),
        _pod("batch", "gated", "gated", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
        _pod("dev", "lost", "nowhere"),
    ]


def _teams() -> list[Raw]:
    namespaced = [{"namespace": entry} for entry in ("vision", "nlp", "dev", "batch")]
    vision, nlp, dev, batch = namespaced
    return [
        _queue("research", _stands("3", "14", "0", 1, deserved="16"), deserved={"gpus": "16"}),
        _queue(
            "vision",
            _stands("2", "8", "0"),
            parent="research",
            members=[vision],
            deserved={"gpus": "8"},
        ),
        _queue(
            "nlp",
            _stands("0.75", "6", "0", 1, oldestWait="3h"),
            parent="research",
            members=[nlp],
            deserved={"gpus": "8"},
            limit={"gpus": "12"},
        ),
        _queue("dev", _stands("1.1", "1", "0.1", deserved="1"), members=[dev, batch], weight=2),
        _queue("lost", {}, parent="gone"),
        {
            "apiVersion": "ration.dev/v1alpha1",
            "kind": "Reservation",
            "metadata": objects.meta("nightly", "vision", creationTimestamp=_BORN),
            "spec": {"for": {"gang": "nightly"}, "start": "2026-11-22T22:00:00Z", "ttl": "1h"},
            "status": {
                "phase": "Held",
                "devices": [
                    {
                        "pod": 0,
                        "node": "gpu-2",
                        "driver": names.DRIVER,
                        "pool": "gpu-2",
                        "device": gpu("gpu-2", 0),
                    }
                ],
            },
        },
    ]


@functools.cache
def _classes() -> list[Raw]:
    """Return the classes as the chart installs them."""
    return [{"apiVersion": "resource.k8s.io/v1", **entry} for entry in helm.usual("DeviceClass")]


def raw() -> list[Raw]:
    """Every object."""
    return [
        _node("gpu-1"),
        _node("gpu-2"),
        _node("gpu-3", cordoned=True),
        *_slices("gpu-1", "controller", {5: _XID, 6: _CORDON}),
        *_slices("gpu-2", "controller", {}),
        *_slices("gpu-3", "scheduler", {}),
        *copy.deepcopy(_classes()),
        *_work(),
        *_line(),
        *_teams(),
    ]


def on_demand() -> list[Raw]:
    """With two kinds of node to be asked for: gpu-1 is of one, and two more are on their way."""
    document = {
        "apiVersion": names.CONFIG_VERSION,
        "kind": "NodeShapes",
        "shapes": [
            shapes.document("h100-8", cost=8, startup="6m", labels={shapes.INSTANCE: "h100-8"}),
            shapes.document("h100-1", gpus=1, cost=1.2, startup="4m"),
        ],
    }
    past = observed_shapes.ObservedShape(startup_s=(312.0,))
    decoded = base64.b64encode(observed_shapes.encode(past)).decode()
    results = raw()
    results[0]["metadata"]["labels"][shapes.INSTANCE] = "h100-8"
    return [
        *results,
        _config_map(node_shapes.NAMES[0], data={"shapes.yaml": yaml.safe_dump(document)}),
        _config_map(node_shapes.NAMES[1], binaryData={"h100-8.json.gz": decoded}),
        _placeholder("node-a", "h100-8", "gang/nlp/rank", "11:56:30"),
        _placeholder("node-b", "h100-8", "gang/nlp/rank", "11:58:00", node="gpu-new"),
        {
            **_node("gpu-new"),
            "metadata": {**_node("gpu-new")["metadata"], "labels": {shapes.INSTANCE: "h100-8"}},
        },
    ]


def _config_map(name: str, **data: Raw) -> Raw:
    meta = {"name": name, "namespace": HOME}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **data}


def _placeholder(name: str, shape: str, wish: str, time: str, node: str = "") -> Raw:
    pod = objects.a_pod(name, **({"nodeName": node} if node else {}), resourceClaims=[])
    pod["metadata"] |= {
        "namespace": HOME,
        "labels": {names.PLACEHOLDER_LABEL: shape},
        "annotations": {names.PLACEHOLDER_FOR: wish},
        "creationTimestamp": f"2026-11-22T{time}Z",
    }
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def an_allocator_rule(driver: str) -> Raw:
    """The controller's DeviceTaintRule for all devices of a driver."""
    meta = {
        **objects.meta(f"ration-driver-{driver}", None),
        "labels": {names.ALLOCATOR_RULE: "true"},
    }
    taint = {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": driver}, "taint": taint}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule"}
    return {**kind, "metadata": meta, "spec": spec}


def objects_of(results: Iterable[Raw]) -> read_model.Objects:
    """Parsed, as the controller's caches hold them."""
    existing = [*results]
    caches = dump.read(existing)
    assert not caches.problems, caches.problems
    teams = [queues.parse(entry) for entry in existing if entry["kind"] == "Queue"]
    parsed = [reservations.parse(entry) for entry in existing if entry["kind"] == "Reservation"]
    created = local.build_objects(names.DRIVER, caches.caches, teams, parsed)
    return dataclasses.replace(
        created, shapes=node_shapes.parse_documents(existing, names.DRIVER, [])
    )


def a_reading(results: Iterable[Raw] | None = None) -> catalog.Reports:
    """Every report of it."""
    return catalog.Reports(
        read_model.ClusterModel(objects_of(raw() if results is None else results)), AT
    )


def explained() -> catalog.Reports:
    """Same as `a_reading`, with why pods wait worked out of it."""
    existing = raw()
    caches = dump.read(existing).caches
    working_out = local_explanation.LocalExplainer(names.DRIVER, caches, AT)
    return catalog.Reports(read_model.ClusterModel(objects_of(existing)), AT, working_out)

"""Dumps of a cluster with running pods, for tests of `ration defrag`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driver import names
from hack.chart import helm
from tests.support.builders import objects

CORE, DRA = "v1", "resource.k8s.io/v1"
OPTED = {names.DEFRAG: "true"}


def as_read(kind: str, obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object as a server lists it."""
    version = CORE if kind in {"Node", "Pod"} else DRA
    return {"apiVersion": version, "kind": kind, **obj}


def running(
    name: str, node: str, *devices: str, owner: str = "ReplicaSet", **meta: Any
) -> list[dict[str, Any]]:
    """A pod that has devices of a node, with its claim; it opted in, unless `meta` says else."""
    pod = objects.a_pod(name, f"{name}-gpu", nodeName=node)
    pod["status"] = {"phase": "Running"}
    if owner:
        obj = {"kind": owner, "name": "web", "uid": "u", "controller": True}
        pod["metadata"]["ownerReferences"] = [obj]
    pod["metadata"]["annotations"] = meta.get("annotations", OPTED)
    reserved = [{"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}]
    request = objects.a_request(count=len(devices))
    status = objects.allocated(node, *devices, reserved=reserved)
    claim = objects.a_claim(f"{name}-gpu", request, status=status)
    return [as_read("Pod", pod), as_read("ResourceClaim", claim)]


def cluster(tmp_path: Path, gpus: Mapping[str, int], *existing: list[dict[str, Any]]) -> str:
    """A dump of nodes with so many GPUs, the chart's classes, and what runs."""
    readings = [as_read("DeviceClass", entry) for entry in helm.usual("DeviceClass")]
    for node, count in gpus.items():
        readings += [
            as_read("Node", objects.a_node(node)),
            as_read("ResourceSlice", objects.a_slice(node, count)),
        ]
    path = tmp_path / "cluster.json"
    items = [*readings, *(entry for each in existing for entry in each)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)

"""kind-config.yaml, with what this cluster adds: mounts of the workers, settings of the machine.

Pure: documents in, documents out. What the file says stays as it stands.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from hack.cluster import errors
from hack.kind import layout

KIND, VERSION = "Cluster", "kind.x-k8s.io/v1alpha4"
Document = Mapping[str, Any]
_CRI = "io.containerd.grpc.v1.cri"


@dataclass(frozen=True, slots=True)
class Host:
    """What of the machine decides about a cluster's settings.

    `legacy_cgroups`: control groups are of version 1. `oom_scores_fixed`: no process may lower a
    score, because the machine lacks CAP_SYS_RESOURCE.
    """

    legacy_cgroups: bool = False
    oom_scores_fixed: bool = False


def parse(text: str) -> Document:
    """Read a configuration of kind; a ClusterError says what is wrong with it."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise errors.ClusterError(f"the configuration of kind is no YAML: {error}") from error
    if not isinstance(document, Mapping) or (
        document.get("kind"), document.get("apiVersion")
    ) != (KIND, VERSION):  # fmt: skip
        raise errors.ClusterError(f"the configuration of kind: expected a {KIND} of {VERSION}")
    if not workers(document, "any"):
        raise errors.ClusterError(
            "the configuration of kind has no worker: simulated GPUs are given to nodes of "
            "`role: worker`"
        )
    return document


def workers(document: Document, name: str) -> tuple[str, ...]:
    """The names that kind gives to the workers, in their order: NAME-worker, NAME-worker2, ..."""
    count = sum(node.get("role") == "worker" for node in document.get("nodes") or ())
    return tuple(f"{name}-worker{number if number > 1 else ''}" for number in range(1, count + 1))


def render(document: Document, where: layout.Layout, cache: layout.Cache, host: Host) -> str:
    """The configuration for `kind create cluster`, as JSON, which is YAML too."""
    wanted = copy.deepcopy(dict(document))
    wanted["name"] = where.name
    names = iter(workers(document, where.name))
    for node in wanted["nodes"]:
        if node.get("role") == "worker":
            mounts = where.mounts(next(names), cache)
            node["extraMounts"] = [
                *(node.get("extraMounts") or ()),
                *(
                    {"hostPath": str(source), "containerPath": str(place)}
                    for place, source in mounts.items()
                ),
            ]
    if host.legacy_cgroups:
        _append(wanted, "kubeadmConfigPatches", _kubelet_patch())
    if host.oom_scores_fixed:
        patch = f'[plugins."{_CRI}"]\n  restrict_oom_score_adj = true\n'
        _append(wanted, "containerdConfigPatches", patch)
    return json.dumps(wanted, indent=2) + "\n"


def _append(document: dict[str, Any], field: str, patch: str) -> None:
    document[field] = [*(document.get(field) or ()), patch]


def _kubelet_patch() -> str:
    """The kubelet refuses control groups of version 1 unless it is told to take them."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
        }
    )

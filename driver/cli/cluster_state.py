"""The cluster that a command decides for: the live one, by the caller's rights, or a dump of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from driver import errors
from driver.cli import cluster, yaml_input
from driver.cli.simulation import dump
from driver.kube import client, gvr

_UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True)
class ObservedState:
    """Observed objects, and what could not be read, in words."""

    dump: dump.Dump
    unreadable: tuple[str, ...] = ()


def read(source: str | None, kubeconfig: Path | None = None) -> ObservedState:
    """The cluster in a file, a folder or standard input (`-`); None: the live one.

    Exits with 2 where there is no kubeconfig.

    Raises:
        BadInput: a file cannot be read.
        ApiError: the API server refused, or was not reached.
    """
    objects, unseen = read_raw(source, kubeconfig)
    return ObservedState(dump.read(objects), unseen)


def read_raw(
    source: str | None, kubeconfig: Path | None = None
) -> tuple[list[Any], tuple[str, ...]]:
    """Return the raw objects of a source, and what could not be read, in words."""
    return (
        read_live(cluster.connect(kubeconfig)) if source is None else (yaml_input.read(source), ())
    )


def read_live(kube: client.KubeClient) -> tuple[list[Mapping[str, Any]], tuple[str, ...]]:
    """Every object of a cluster that deciding looks at, raw, and what may not be seen, in words.

    Raises:
        ApiError: nodes, slices, classes, claims or pods cannot be listed.
    """
    obj: list[Mapping[str, Any]] = []
    for kind, resource in (
        ("Node", gvr.NODES),
        ("ResourceSlice", gvr.RESOURCE_SLICES),
        ("DeviceClass", gvr.DEVICE_CLASSES),
        ("ResourceClaim", gvr.RESOURCE_CLAIMS),
    ):
        obj += _named(kind, resource, kube.list(resource).items)
    # Pods that ended take nothing of a node any more.
    running = kube.list(gvr.PODS, field_selector=_UNFINISHED).items
    obj += _named("Pod", gvr.PODS, running)
    unseen: list[str] = []
    for kind, resource, versions in (
        ("ResourceClaimTemplate", gvr.RESOURCE_CLAIM_TEMPLATES, ("v1",)),
        ("PriorityClass", gvr.PRIORITY_CLASSES, ("v1",)),
        ("PersistentVolumeClaim", gvr.PVCS, ("v1",)),
        ("PersistentVolume", gvr.PVS, ("v1",)),
        ("Namespace", gvr.NAMESPACES, ("v1",)),
        ("StorageClass", gvr.STORAGE_CLASSES, ("v1",)),
        ("CSINode", gvr.CSI_NODES, ("v1",)),
        ("CSIDriver", gvr.CSI_DRIVERS, ("v1",)),
        ("CSIStorageCapacity", gvr.STORAGE_CAPACITIES, ("v1",)),
        ("VolumeAttachment", gvr.VOLUME_ATTACHMENTS, ("v1",)),
        ("DeviceTaintRule", gvr.DEVICE_TAINT_RULES, gvr.DEVICE_TAINT_RULE_VERSIONS),
    ):
        served = [replace(resource, version=version) for version in versions]
        try:
            obj += _first_served(kube, kind, served)
        except errors.Forbidden as error:
            unseen.append(f"{resource.plural}: {error}")
    return obj, tuple(unseen)


def _first_served(
    kube: client.KubeClient, kind: str, versions: Iterable[gvr.Resource]
) -> list[Mapping[str, Any]]:
    """Under the first version that the server has; nothing where it has none of them."""
    for resource in versions:
        try:
            return _named(kind, resource, kube.list(resource).items)
        except errors.NotFound:
            continue
    return []


def _named(
    kind: str, resource: gvr.Resource, items: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Items of a listing do not say what they are."""
    return [{"apiVersion": resource.api_version, "kind": kind, **item} for item in items]

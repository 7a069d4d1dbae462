"""What is gathered, and what of it stays behind. Pure.

Secrets are not on the list, values of environment variables stay behind, and so does the copy of an
object that kubectl keeps in an annotation.
"""

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from driver.kube import gvr

OURS: Final = "app.kubernetes.io/part-of=ration"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LEFT_OUT = "(left out)"
_ADMISSION = ("admissionregistration.k8s.io", "v1")


@dataclass(frozen=True, slots=True)
class Piece:
    """One kind of object: of the chart's namespace, or `labels` select those that are ours."""

    kind: gvr.Resource
    here: bool = False
    labels: str = ""


PIECES: Final = (
    Piece(gvr.PODS, here=True),
    Piece(gvr.DAEMON_SETS, here=True),
    Piece(gvr.DEPLOYMENTS, here=True),
    Piece(gvr.LEASES, here=True),
    Piece(gvr.CONFIG_MAPS, here=True, labels=OURS),
    Piece(gvr.PDBS, here=True),
    Piece(gvr.VALIDATING_WEBHOOKS, labels=OURS),
    Piece(gvr.MUTATING_WEBHOOKS, labels=OURS),
    Piece(
        gvr.Resource(*_ADMISSION, "validatingadmissionpolicies", namespaced=False),
        labels=OURS,
    ),
    Piece(
        gvr.Resource(*_ADMISSION, "validatingadmissionpolicybindings", namespaced=False),
        labels=OURS,
    ),
    Piece(
        gvr.Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False),
        labels=OURS,
    ),
    Piece(gvr.QUEUES),
    Piece(gvr.RESERVATIONS),
    Piece(gvr.DEVICE_TAINT_RULES),
)


@dataclass(slots=True)
class Index:
    """What is in the archive, and what could not be had, with why."""

    at: dt.datetime
    version: str
    files: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As it lies in the archive."""
        return {
            "at": self.at.isoformat(),
            "ration": self.version,
            "files": sorted(self.files),
            "missing": [{"what": one, "why": why} for one, why in sorted(self.missing.items())],
        }


def bare(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what is nobody's business."""
    found: dict[str, Any] = json.loads(json.dumps(obj))
    meta = found.get("metadata", {})
    meta.pop("managedFields", None)
    (meta.get("annotations") or {}).pop(_LAST_APPLIED, None)
    for container in _containers(found):
        for one in container.get("env") or ():
            if "value" in one:
                one["value"] = _LEFT_OUT
    return found


def is_told_by_us(event: Mapping[str, Any], namespace: str) -> bool:
    """Whether an event is of our components, or is about what is in the chart's namespace."""
    said = str(event.get("reportingController") or event.get("deprecatedSource", {}))
    return "ration" in said or event["metadata"].get("namespace") == namespace


def containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The names of a pod's containers that have run, and whether each was started again."""
    status = pod.get("status", {})
    for one in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        yield str(one["name"]), bool(one.get("restartCount"))


def metrics_port(pod: Mapping[str, Any]) -> int | None:
    """The port that a pod of ours serves its metrics at."""
    ports = (
        port
        for container in pod.get("spec", {}).get("containers", ())
        for port in container.get("ports") or ()
    )
    return next((int(one["containerPort"]) for one in ports if one.get("name") == "metrics"), None)


def images(pods: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Which images run, by component."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        component = str(labels.get("app.kubernetes.io/component", "other"))
        named = (str(one.get("image", "")) for one in pod["spec"].get("containers", ()))
        found.setdefault(component, set()).update(named)
    return {component: sorted(named) for component, named in sorted(found.items())}


def _containers(obj: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    spec = obj.get("spec") or {}
    template = spec.get("template") if isinstance(spec, dict) else None
    inner = template.get("spec") if isinstance(template, dict) else spec
    if isinstance(inner, dict):
        for key in ("containers", "initContainers"):
            found = inner.get(key)
            yield from found if isinstance(found, list) else ()

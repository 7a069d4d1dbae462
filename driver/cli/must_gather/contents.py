"""Contents of the archive, and what is removed from it. Pure.

Secrets are not on the list. Values of environment variables are removed, and so is the copy of an
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
class GatherItem:
    """One kind of object: of the chart's namespace, or `labels` select those that are ours."""

    kind: gvr.Resource
    here: bool = False
    labels: str = ""


PIECES: Final = (
    GatherItem(gvr.PODS, here=True),
    GatherItem(gvr.DAEMON_SETS, here=True),
    GatherItem(gvr.DEPLOYMENTS, here=True),
    GatherItem(gvr.LEASES, here=True),
    GatherItem(gvr.CONFIG_MAPS, here=True, labels=OURS),
    GatherItem(gvr.PDBS, here=True),
    GatherItem(gvr.VALIDATING_WEBHOOKS, labels=OURS),
    GatherItem(gvr.MUTATING_WEBHOOKS, labels=OURS),
    GatherItem(
        gvr.Resource(*_ADMISSION, "validatingadmissionpolicies", namespaced=False),
        labels=OURS,
    ),
    GatherItem(
        gvr.Resource(*_ADMISSION, "validatingadmissionpolicybindings", namespaced=False),
        labels=OURS,
    ),
    GatherItem(
        gvr.Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False),
        labels=OURS,
    ),
    GatherItem(gvr.QUEUES),
    GatherItem(gvr.RESERVATIONS),
    GatherItem(gvr.DEVICE_TAINT_RULES),
)


@dataclass(slots=True)
class Index:
    """Files of the archive, and what is missing, with the cause."""

    at: dt.datetime
    version: str
    files: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return it as stored in the archive."""
        return {
            "at": self.at.isoformat(),
            "ration": self.version,
            "files": sorted(self.files),
            "missing": [{"what": item, "why": why} for item, why in sorted(self.missing.items())],
        }


def strip_object(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what is nobody's business."""
    result: dict[str, Any] = json.loads(json.dumps(obj))
    meta = result.get("metadata", {})
    meta.pop("managedFields", None)
    (meta.get("annotations") or {}).pop(_LAST_APPLIED, None)
    for container in _containers(result):
        for item in container.get("env") or ():
            if "value" in item:
                item["value"] = _LEFT_OUT
    return result


def is_relevant_event(event: Mapping[str, Any], namespace: str) -> bool:
    """Return whether an event is of Ration's components or about the chart's namespace."""
    message = str(event.get("reportingController") or event.get("deprecatedSource", {}))
    return "ration" in message or event["metadata"].get("namespace") == namespace


def containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The names of a pod's containers that have run, and whether each was started again."""
    status = pod.get("status", {})
    for item in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        yield str(item["name"]), bool(item.get("restartCount"))


def metrics_port(pod: Mapping[str, Any]) -> int | None:
    """The port that a pod of ours serves its metrics at."""
    ports = (
        port
        for container in pod.get("spec", {}).get("containers", ())
        for port in container.get("ports") or ()
    )
    return next(
        (int(item["containerPort"]) for item in ports if item.get("name") == "metrics"), None
    )


def images(pods: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the running images by component."""
    entries: dict[str, set[str]] = {}
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        component = str(labels.get("app.kubernetes.io/component", "other"))
        named = (str(item.get("image", "")) for item in pod["spec"].get("containers", ()))
        entries.setdefault(component, set()).update(named)
    return {component: sorted(named) for component, named in sorted(entries.items())}


def _containers(obj: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    spec = obj.get("spec") or {}
    template = spec.get("template") if isinstance(spec, dict) else None
    inner = template.get("spec") if isinstance(template, dict) else spec
    if isinstance(inner, dict):
        for key in ("containers", "initContainers"):
            result = inner.get(key)
            yield from result if isinstance(result, list) else ()

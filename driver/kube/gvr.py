"""Resources of the API server as values: paths and object keys."""

import urllib.parse
from dataclasses import dataclass
from typing import Any, TypeAlias

from driver import ids

Object: TypeAlias = dict[str, Any]
"""An API object exactly as the server wrote it; unknown fields stay."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object: `group` is "" for the core group, `plural` is the path's word."""

    group: str
    version: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """Return `resource.k8s.io/v1`, or `v1` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str = ""
    ) -> str:
        """Return `/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>/<subresource>`.

        Without a namespace, that of all namespaces; without a name, that of the collection.
        """
        parts = [f"/apis/{self.group}" if self.group else "/api", self.version]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", _quoted(namespace)]
        parts.append(self.plural)
        if name is not None:
            parts.append(_quoted(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def object_key(obj: Object) -> ids.Key:
    """Return `namespace/name`, or `name` for objects without a namespace."""
    meta = obj["metadata"]
    namespace = meta.get("namespace")
    return ids.Key(f"{namespace}/{meta['name']}" if namespace else meta["name"])


def object_version(obj: Object) -> int:
    """Return `metadata.resourceVersion` as an integer, as Kubernetes 1.35 and later guarantee."""
    return int(obj["metadata"]["resourceVersion"])


def _quoted(part: str) -> str:
    return urllib.parse.quote(part, safe="")


PODS = Resource("", "v1", "pods", namespaced=True)
NODES = Resource("", "v1", "nodes", namespaced=False)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", namespaced=True)
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
PVCS = Resource("", "v1", "persistentvolumeclaims", namespaced=True)
PVS = Resource("", "v1", "persistentvolumes", namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", namespaced=False)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", namespaced=False)
STORAGE_CAPACITIES = Resource("storage.k8s.io", "v1", "csistoragecapacities", namespaced=True)
VOLUME_ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", namespaced=True)
DEPLOYMENTS = Resource("apps", "v1", "deployments", namespaced=True)
JOBS = Resource("batch", "v1", "jobs", namespaced=True)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", namespaced=True)
SECRETS = Resource("", "v1", "secrets", namespaced=True)
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False
)
MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", namespaced=False
)
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)
"""Queries to the API server, which are not stored."""
EVENTS = Resource("events.k8s.io", "v1", "events", namespaced=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", namespaced=True)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", namespaced=True)
RESOURCE_CLAIM_TEMPLATES = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", namespaced=True
)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
DEVICE_TAINT_RULES = Resource("resource.k8s.io", "v1", "devicetaintrules", namespaced=False)
DEVICE_TAINT_RULE_VERSIONS = ("v1", "v1beta2")
"""Versions that servers may have, the newest first: 1.36 has no v1."""
"""v1 from Kubernetes 1.37 on; 1.36 serves v1beta2 if enabled."""
QUEUES = Resource("ration.dev", "v1alpha1", "queues", namespaced=False)
RESERVATIONS = Resource("ration.dev", "v1alpha1", "reservations", namespaced=True)
PDBS = Resource("policy", "v1", "poddisruptionbudgets", namespaced=True)
POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", namespaced=True)
"""From Kubernetes 1.37 on, if enabled (KEP-4671)."""
COSCHEDULING_POD_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", namespaced=True)
"""The coscheduling plugin's, if its CRD is installed (kubernetes-sigs/scheduler-plugins)."""

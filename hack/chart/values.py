"""Every value of the chart: type, bounds, default, meaning. Flags come from the driver's settings.

`values.yaml`, `values.schema.json` and the reference page are generated from here.
"""

from typing import Annotated, Any, Literal

import pydantic

from driver import names
from driver.api import offerings as offered
from driver.api import v1alpha1, workloads
from driver.controller.admission.config import AdmissionConfig
from driver.controller.config import ControllerConfig
from driver.devices import xids
from driver.files import driver_search
from driver.kubeletplugin.config import PluginConfig
from driver.mps.config import SupervisorConfig
from hack.chart import nodes, parts

_HARDENED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_PRIVILEGED = {"privileged": True, "readOnlyRootFilesystem": True}
_JUDGED = rf"^\d+=({'|'.join(xids.XidClass)})$"
_HOOK = r"^(auto|none|(/[A-Za-z0-9_+-][A-Za-z0-9_.+-]*)+)$"
_NODE_TOLERATIONS = [{"operator": "Exists"}]
EXTENDED = r"^$|^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
PROFILE = r"^\d+(c\.\d+)?g\.\d+gb([+-](me|gfx)(\.all)?)?$"


class Image(parts.Part):
    """The image of every component."""

    repository: Annotated[str, pydantic.Field(min_length=1)] = pydantic.Field(
        default="ration", description="Repository, with the registry's host where there is one."
    )
    tag: str = pydantic.Field(default="", description="Tag; empty: the chart's appVersion.")
    digest: Annotated[str, pydantic.Field(pattern=r"^$|^sha256:[0-9a-f]{64}$")] = pydantic.Field(
        default="", description="sha256:... in place of a tag."
    )
    pull_policy: parts.PullPolicy = pydantic.Field(
        default="IfNotPresent", description="When nodes pull it."
    )


class DeviceClass(parts.Part):
    """A DeviceClass."""

    enabled: bool = pydantic.Field(default=True, description="Install it.")
    name: parts.NameOrNone = pydantic.Field(
        default="", description="Its name; empty: by the driver's name."
    )
    extended_resource_name: Annotated[str, pydantic.Field(pattern=EXTENDED)] = pydantic.Field(
        default="",
        description="Extended resource that kube-scheduler turns into claims of it, such as "
        "nvidia.com/gpu; these get GPUs of nodes that kube-scheduler allocates only.",
    )


class MigProfile(parts.Part):
    """The DeviceClass of one MIG profile."""

    profile: Annotated[str, pydantic.Field(pattern=PROFILE)] = pydantic.Field(
        description="The profile, as NVIDIA spells it: 1g.10gb."
    )
    name: parts.NameOrNone = pydantic.Field(
        default="", description="Its name; empty: gpu-mig-1g.10gb.ration.dev."
    )
    extended_resource_name: Annotated[str, pydantic.Field(pattern=EXTENDED)] = pydantic.Field(
        default="", description="As of the other classes: nvidia.com/mig-1g.10gb."
    )


class MigClass(DeviceClass):
    """Parts of a GPU: any MIG profile, selected by the claim's `profile`."""

    profiles: list[MigProfile] = pydantic.Field(
        default=[], description="Profiles with a DeviceClass of their own."
    )


class GpuClass(DeviceClass):
    """Whole GPUs; named as the driver."""


class TimeSlicingClass(DeviceClass):
    """Shares of GPUs whose processes take turns; gpu-timeslice.ration.dev."""


class MpsClass(DeviceClass):
    """Shares of GPUs under MPS; gpu-mps.ration.dev."""


class SliceClass(DeviceClass):
    """A part of a GPU of any kind, by what is needed of it; gpu-slice.ration.dev."""

    isolation: v1alpha1.Isolation = pydantic.Field(
        default="limits",
        description="Of claims that do not say: hardware gives MIG devices, limits MPS shares "
        "too, none all there is.",
    )


class DeviceClasses(parts.Part):
    """What claims may ask for, one DeviceClass a strategy."""

    gpu: GpuClass = pydantic.Field(default=GpuClass(), description=parts.first_line(GpuClass))
    time_slicing: TimeSlicingClass = pydantic.Field(
        default=TimeSlicingClass(), description=parts.first_line(TimeSlicingClass)
    )
    mps: MpsClass = pydantic.Field(default=MpsClass(), description=parts.first_line(MpsClass))
    mig: MigClass = pydantic.Field(default=MigClass(), description=parts.first_line(MigClass))
    slice: SliceClass = pydantic.Field(
        default=SliceClass(), description=parts.first_line(SliceClass)
    )


class PodDisruptionBudget(parts.Part):
    """Drains take one replica at a time."""

    enabled: bool = pydantic.Field(default=True, description="Install it.")


class Web(parts.Part):
    """The page and the JSON API, for reading only."""

    enabled: bool = pydantic.Field(
        default=True, description="Serve it, by default to `kubectl port-forward` alone."
    )
    port: Annotated[int, pydantic.Field(ge=1, le=65535)] = pydantic.Field(
        default=8081, description="Its port in the controller's pods."
    )
    exposed: bool = pydantic.Field(
        default=False,
        description="Let others reach it, by a Service: readers show a token of the cluster, and "
        "may list resourceclaims and pods in all namespaces.",
    )
    service_type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = pydantic.Field(
        default="ClusterIP", description="Of that Service."
    )
    service_annotations: dict[str, str] = pydantic.Field(default={}, description="Of that Service.")
    tls_secret_name: parts.NameOrNone = pydantic.Field(
        default="",
        description="Secret (kubernetes.io/tls) of its certificate; empty: plain HTTP, for a proxy "
        "that has one.",
    )
    peers: list[parts.Free] = pydantic.Field(
        default=[],
        description="Of its NetworkPolicy: peers that may reach it; empty: all.",
    )


class ControllerOwn(parts.Component):
    """The controller: decides which GPU each pod's claims get."""

    enabled: bool = pydantic.Field(
        default=True, description="Run it; without it, kube-scheduler allocates all."
    )
    replicas: Annotated[int, pydantic.Field(ge=1, le=9)] = pydantic.Field(
        default=2, description="Replicas, of which one leads."
    )
    usual: list[workloads.Workload] = pydantic.Field(
        default=[],
        description="Workloads of a UsualWorkloads document: what is usually asked, which counts "
        "beside what claims have now; empty: a mix of whole GPUs and some parts.",
    )
    pod_disruption_budget: PodDisruptionBudget = pydantic.Field(
        default=PodDisruptionBudget(), description=parts.first_line(PodDisruptionBudget)
    )
    web: Web = pydantic.Field(default=Web(), description=parts.first_line(Web))


class PluginOwn(parts.Component):
    """The kubelet plugin: publishes each node's GPUs and prepares them."""

    offerings: list[offered.Rule] = pydantic.Field(
        default=[],
        description="Rules of a NodeOfferings document: which faces which GPUs are published as.",
    )


class Tls(parts.Part):
    """The webhook's certificate."""

    mode: Literal["self", "cert-manager", "secret"] = pydantic.Field(
        default="self",
        description="self: made and renewed by the webhook; cert-manager: by a Certificate of it; "
        "secret: it is there.",
    )
    secret_name: parts.NameOrNone = pydantic.Field(
        default="", description="Secret (kubernetes.io/tls); empty: by the component's name."
    )
    ca_bundle: str = pydantic.Field(
        default="", description="Of mode secret: the PEM of whoever signed the certificate."
    )
    issuer_ref: parts.Free = pydantic.Field(
        default={}, description="Of mode cert-manager: the issuer; empty: one that signs itself."
    )


class AdmissionOwn(parts.Component):
    """The webhook: refuses what no node could prepare, converts device plugins' resources."""

    enabled: bool = pydantic.Field(default=True, description="Run it; else nodes refuse later.")
    replicas: Annotated[int, pydantic.Field(ge=1, le=9)] = pydantic.Field(
        default=2, description="Replicas, which all answer."
    )
    port: Annotated[int, pydantic.Field(ge=1, le=65535)] = pydantic.Field(
        default=8443, description="Port of the webhook in its pods."
    )
    tls: Tls = pydantic.Field(default=Tls(), description=parts.first_line(Tls))
    failure_policy: Literal["Ignore", "Fail"] = pydantic.Field(
        default="Ignore", description="Of claims and classes, while it is away."
    )
    convert: Literal["auto", "on", "off"] = pydantic.Field(
        default="auto",
        description="Convert pods that ask for nvidia.com/gpu, gpu.shared or mig-* to claims; "
        "auto: where the controller allocates. Label ration.dev/convert=false: not that namespace.",
    )
    gate: bool = pydantic.Field(
        default=True,
        description="Gate new pods until the controller's first answer, so that kube-scheduler "
        "tries none in vain. Label ration.dev/gate=false: not in that namespace.",
    )
    pod_disruption_budget: PodDisruptionBudget = pydantic.Field(
        default=PodDisruptionBudget(), description=parts.first_line(PodDisruptionBudget)
    )


class Crds(parts.Part):
    """The kinds Queue and Reservation."""

    install: bool = pydantic.Field(
        default=True,
        description="Install and update them; false: they are there, by deploy/crds or by another "
        "release.",
    )
    keep: bool = pydantic.Field(
        default=True,
        description="Leave them when it is uninstalled: with a kind all its objects go.",
    )


class Policies(parts.Part):
    """Admission policies: most narrow rights to what is meant."""

    enabled: bool = pydantic.Field(
        default=True, description="Install them; without them tokens may do more than they should."
    )
    gate: bool = pydantic.Field(
        default=True,
        description="Install the MutatingAdmissionPolicy that gates pods with claims: only in "
        "namespaces labelled ration.dev/gate=true, and from Kubernetes 1.36 on.",
    )


class NetworkPolicy(parts.Part):
    """Only the metrics ports are reached."""

    enabled: bool = pydantic.Field(default=False, description="Install one a component.")
    metrics_from: list[parts.Free] = pydantic.Field(
        default=[], description="Peers that may read metrics; empty: all."
    )


class ServiceMonitor(parts.Part):
    """Metrics for a Prometheus operator."""

    enabled: bool = pydantic.Field(
        default=False, description="Install it, and a Service; its CRD has to be there."
    )
    interval: Annotated[str, pydantic.Field(pattern=r"^\d+(ms|s|m)$")] = pydantic.Field(
        default="30s", description="How often it is read."
    )
    labels: dict[str, str] = pydantic.Field(
        default={}, description="Labels by which a Prometheus selects it."
    )


class PrometheusRule(parts.Part):
    """Alerts for a Prometheus operator."""

    enabled: bool = pydantic.Field(
        default=False, description="Install them; their CRD has to be there."
    )
    labels: dict[str, str] = pydantic.Field(
        default={}, description="Labels by which a Prometheus selects them."
    )
    docs: Annotated[str, pydantic.Field(pattern=r"^https?://[^ ]*[^/ ]$")] = pydantic.Field(
        default="https://ration.dev/docs",
        description="Where the documentation is served: alerts name the page that says what to do.",
    )


class Dashboards(parts.Part):
    """Dashboards for a Grafana whose sidecar looks for ConfigMaps."""

    enabled: bool = pydantic.Field(default=False, description="Install them.")
    labels: dict[str, str] = pydantic.Field(
        default={"grafana_dashboard": "1"}, description="Labels by which the sidecar finds them."
    )
    annotations: dict[str, str] = pydantic.Field(
        default={}, description="Annotations, such as grafana_folder."
    )


class OpenShift(parts.Part):
    """What OpenShift asks for beside RBAC."""

    privileged: bool = pydantic.Field(
        default=False, description="Bind the node's accounts to the privileged SCC."
    )


class CriticalPodsQuota(parts.Part):
    """A quota that lets pods have the system's priority classes, where a provider asks for it."""

    enabled: bool = pydantic.Field(default=False, description="Install it.")
    pods: Annotated[int, pydantic.Field(ge=1)] = pydantic.Field(
        default=10000, description="How many."
    )


class Uninstall(parts.Part):
    """Hooks of `helm uninstall`: refuse while claims are in use, leave nothing behind."""

    enabled: bool = pydantic.Field(
        default=True, description="Have them; without them only the release's own objects go."
    )
    node_seconds: Annotated[int, pydantic.Field(ge=1, le=240)] = pydantic.Field(
        default=60, description="Longest wait for nodes to be cleared; those left are named."
    )


class Tests(parts.Part):
    """`helm test`: a pod that claims a GPU."""

    enabled: bool = pydantic.Field(default=True, description="Have it.")
    image: parts.OwnImage = pydantic.Field(
        default=parts.OwnImage(), description="Its image, field by field; it needs Python."
    )
    tolerations: list[parts.Free] = pydantic.Field(
        default=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        description="Taints of nodes that it accepts.",
    )


def _resources(cpu: str, memory: str) -> parts.Free:
    return {"requests": {"cpu": cpu, "memory": memory}}


class MpsOwn(parts.Component):
    """The MPS supervisor: runs the MPS daemons of each node."""

    enabled: bool = pydantic.Field(
        default=True, description="Run it; without it no face for MPS is published."
    )


class Common(parts.Part):
    """The values of the chart; none has to be set."""

    name_override: parts.NameOrNone = pydantic.Field(
        default="", description="In place of the chart's name, in names and labels."
    )
    fullname_override: parts.NameOrNone = pydantic.Field(
        default="", description="In place of the release's and the chart's name, in names."
    )
    common_labels: dict[str, str] = pydantic.Field(default={}, description="Labels of all objects.")
    image: Image = pydantic.Field(default=Image(), description=parts.first_line(Image))
    image_pull_secrets: list[parts.Free] = pydantic.Field(
        default=[], description="Secrets to pull images with: [{name: ...}]."
    )
    driver_name: Annotated[str, pydantic.Field(max_length=63, pattern=parts.DNS_SUBDOMAIN)] = (
        pydantic.Field(
            default=names.DRIVER,
            description="Name of the DRA driver. DeviceClasses are named by it; as "
            "gpu.nvidia.com those of whole GPUs and of MIG have NVIDIA's names.",
        )
    )
    kubelet_root: parts.HostPath = pydantic.Field(
        default="/var/lib/kubelet", description="The kubelet's directory."
    )
    cdi_root: parts.HostPath = pydantic.Field(
        default="/var/run/cdi", description="A directory in which the runtime looks for CDI specs."
    )
    state_dir: parts.HostPath = pydantic.Field(
        default="/var/lib/ration", description="Where a node's records are kept."
    )
    driver_root: parts.HostPathOrAuto = pydantic.Field(
        default=driver_search.AUTO,
        description="Root of the NVIDIA driver's files on the nodes; auto: on each node the first "
        f"of {', '.join(driver_search.PLACES)} that has libnvidia-ml.so.1.",
    )


_OF_DEPLOYMENTS = {
    "priority_class_name": "system-cluster-critical",
    "pod_security_context": {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "security_context": _HARDENED,
}
# The image's own user has no rights on the node.
_OF_NODES = {
    "priority_class_name": "system-node-critical",
    "pod_security_context": {"runAsUser": 0, "runAsGroup": 0},
    "security_context": _PRIVILEGED,
}
_SECTIONS: parts.Fields = {
    "controller": parts.held(
        parts.table(
            "Controller",
            ControllerOwn,
            parts.flags(
                ControllerConfig,
                "writers",
                "refused_seconds",
                "starvation_seconds",
                "starvation_without_queues",
                "backfill_hold_seconds",
                "backfill_max_fraction",
                "relist_seconds",
                "evict_over_share",
                "label_nodes",
                "pod_groups",
                "log_level",
                "policies",
            )
            | {"nodes": parts.held(nodes.Nodes)},
        ),
        resources=_resources("100m", "256Mi"),
        **_OF_DEPLOYMENTS,
    ),
    "kubelet_plugin": parts.held(
        parts.table(
            "KubeletPlugin",
            PluginOwn,
            parts.flags(
                PluginConfig,
                "share_domain",
                "beside",
                "evict_from_broken",
                "reset_gpus",
                "health_poll_seconds",
                "rediscover_seconds",
                "usage_seconds",
                "nvml_patience_seconds",
                "log_level",
                xid_class=list[Annotated[str, pydantic.Field(pattern=_JUDGED)]],
                cdi_hook=Annotated[str, pydantic.Field(pattern=_HOOK)],
            ),
        ),
        resources=_resources("20m", "128Mi"),
        tolerations=_NODE_TOLERATIONS,
        **_OF_NODES,
    ),
    "mps": parts.held(
        parts.table(
            "Mps",
            MpsOwn,
            parts.flags(SupervisorConfig, "look_seconds", "poll_seconds", "log_level"),
        ),
        resources=_resources("10m", "48Mi"),
        tolerations=_NODE_TOLERATIONS,
        **_OF_NODES,
    ),
    "admission": parts.held(
        parts.table(
            "Admission",
            AdmissionOwn,
            parts.flags(AdmissionConfig, "template_seconds", "log_level"),
        ),
        resources=_resources("50m", "128Mi"),
        **_OF_DEPLOYMENTS,
    ),
    "device_classes": parts.held(DeviceClasses),
    "crds": parts.held(Crds),
    "policies": parts.held(Policies),
    "network_policy": parts.held(NetworkPolicy),
    "service_monitor": parts.held(ServiceMonitor),
    "prometheus_rule": parts.held(PrometheusRule),
    "dashboards": parts.held(Dashboards),
    "openshift": parts.held(OpenShift),
    "critical_pods_quota": parts.held(CriticalPodsQuota),
    "uninstall": parts.held(Uninstall),
    "tests": parts.held(Tests),
}
Values = parts.table("Values", Common, parts.flags(PluginConfig, "allocator") | _SECTIONS)


def defaults() -> dict[str, Any]:
    """The values as they stand without any said, spelled as in values.yaml."""
    return Values().model_dump(mode="json", by_alias=True)

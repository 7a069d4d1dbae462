"""Values of what is installed beside the programs: kinds, policies, monitoring, hooks."""

from typing import Annotated

import pydantic

from hack.chart import parts


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
    node_timeout_seconds: Annotated[int, pydantic.Field(ge=1, le=240)] = pydantic.Field(
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

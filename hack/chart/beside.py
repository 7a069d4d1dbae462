"""Values of what is installed beside the programs: kinds, policies, monitoring, hooks."""

from typing import Annotated

import pydantic

from hack.chart import parts


class Crds(parts.Part):
    """The kinds Queue and Reservation."""

    install: bool = pydantic.Field(
        default=True,
        description="Install and update the CRDs; false: they are installed by deploy/crds or "
        "another release.",
    )
    keep: bool = pydantic.Field(
        default=True,
        description="Keep the CRDs on uninstall; deleting a CRD deletes its objects.",
    )


class Policies(parts.Part):
    """Admission policies: most narrow rights to what is meant."""

    enabled: bool = pydantic.Field(
        default=True,
        description="Install the admission policies that restrict the components' tokens.",
    )
    gate: bool = pydantic.Field(
        default=True,
        description="Install the MutatingAdmissionPolicy that gates pods with claims in namespaces "
        "labelled ration.dev/gate=true (Kubernetes 1.36 or newer).",
    )
    finalizers: bool = pydantic.Field(
        default=True,
        description="Install the MutatingAdmissionPolicy that gives new claims of the chart's "
        "classes the finalizer of an allocation, which saves a write for each (Kubernetes 1.36 or "
        "newer).",
    )


class NetworkPolicy(parts.Part):
    """Only the metrics ports are reached."""

    enabled: bool = pydantic.Field(
        default=False, description="Create a NetworkPolicy for each component."
    )
    metrics_from: list[parts.Free] = pydantic.Field(
        default=[], description="NetworkPolicy peers that may scrape metrics; empty: all."
    )


class ServiceMonitor(parts.Part):
    """Metrics for a Prometheus operator."""

    enabled: bool = pydantic.Field(
        default=False, description="Create a ServiceMonitor and its Service; requires its CRD."
    )
    interval: Annotated[str, pydantic.Field(pattern=r"^\d+(ms|s|m)$")] = pydantic.Field(
        default="30s", description="Scrape interval."
    )
    labels: dict[str, str] = pydantic.Field(
        default={}, description="Labels by which Prometheus selects the ServiceMonitor."
    )


class PrometheusRule(parts.Part):
    """Alerts for a Prometheus operator."""

    enabled: bool = pydantic.Field(
        default=False, description="Create the alert rules; requires the PrometheusRule CRD."
    )
    labels: dict[str, str] = pydantic.Field(
        default={}, description="Labels by which Prometheus selects the rules."
    )
    docs: Annotated[str, pydantic.Field(pattern=r"^https?://[^ ]*[^/ ]$")] = pydantic.Field(
        default="https://ration.dev/docs",
        description="Base URL of the documentation, for the runbook links of alerts.",
    )


class Dashboards(parts.Part):
    """Dashboards for a Grafana whose sidecar looks for ConfigMaps."""

    enabled: bool = pydantic.Field(
        default=False, description="Create the ConfigMaps of the dashboards."
    )
    labels: dict[str, str] = pydantic.Field(
        default={"grafana_dashboard": "1"},
        description="Labels by which the Grafana sidecar selects them.",
    )
    annotations: dict[str, str] = pydantic.Field(
        default={}, description="Annotations, such as grafana_folder."
    )


class OpenShift(parts.Part):
    """What OpenShift asks for beside RBAC."""

    privileged: bool = pydantic.Field(
        default=False,
        description="Bind the service accounts of node components to the privileged SCC.",
    )


class CriticalPodsQuota(parts.Part):
    """A quota that lets pods have the system's priority classes, where a provider asks for it."""

    enabled: bool = pydantic.Field(default=False, description="Create it.")
    pods: Annotated[int, pydantic.Field(ge=1)] = pydantic.Field(
        default=10000, description="Maximum number of critical pods in the namespace."
    )


class Uninstall(parts.Part):
    """Hooks of `helm uninstall`: refuse while claims are in use, leave nothing behind."""

    enabled: bool = pydantic.Field(
        default=True,
        description="Run the uninstall hooks. Without them only the release's own objects are "
        "deleted.",
    )
    node_timeout_seconds: Annotated[int, pydantic.Field(ge=1, le=240)] = pydantic.Field(
        default=60,
        description="Maximum time in seconds to wait for the cleanup of nodes; unfinished nodes "
        "are reported.",
    )


class Tests(parts.Part):
    """`helm test`: a pod that claims a GPU."""

    enabled: bool = pydantic.Field(default=True, description="Create the test pod.")
    image: parts.OwnImage = pydantic.Field(
        default=parts.OwnImage(), description="Its image, field by field; it needs Python."
    )
    tolerations: list[parts.Free] = pydantic.Field(
        default=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        description="Tolerations of its pods.",
    )

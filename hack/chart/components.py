"""Values of the programs that run, beside their flags: controller, kubelet plugin, MPS, webhook."""

from typing import Annotated, Literal

import pydantic

from driver.api import managed_drivers as api_managed_drivers
from driver.api import offerings as offered
from driver.api import workload_mix as api_workload_mix
from hack.chart import parts


class PodDisruptionBudget(parts.Part):
    """Drains take one replica at a time."""

    enabled: bool = pydantic.Field(default=True, description="Create it.")


class Web(parts.Part):
    """The page and the JSON API, for reading only."""

    enabled: bool = pydantic.Field(
        default=True, description="Serve the page, by default only for `kubectl port-forward`."
    )
    port: Annotated[int, pydantic.Field(ge=1, le=65535)] = pydantic.Field(
        default=8081, description="Container port of the page."
    )
    exposed: bool = pydantic.Field(
        default=False,
        description="Expose the page by a Service. Readers authenticate with a bearer token whose "
        "user may list resourceclaims and pods in all namespaces.",
    )
    service_type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = pydantic.Field(
        default="ClusterIP", description="The same field of that Service."
    )
    service_annotations: dict[str, str] = pydantic.Field(
        default={}, description="The same field of that Service."
    )
    tls_secret_name: parts.NameOrNone = pydantic.Field(
        default="",
        description="Name of the kubernetes.io/tls Secret with its certificate. Empty: plain "
        "HTTP, for use behind a TLS proxy.",
    )
    peers: list[parts.Free] = pydantic.Field(
        default=[],
        description="NetworkPolicy peers that may reach the page; empty: all.",
    )


class ControllerOwn(parts.Component):
    """The controller: decides which GPU each pod's claims get."""

    enabled: bool = pydantic.Field(
        default=True,
        description="Deploy the controller. Without it kube-scheduler allocates all devices.",
    )
    replicas: Annotated[int, pydantic.Field(ge=1, le=9)] = pydantic.Field(
        default=2, description="Number of replicas, of which one leads."
    )
    workload_mix: list[api_workload_mix.Workload] = pydantic.Field(
        default=[],
        description="Workloads of the WorkloadMix document, which the fragmentation policy "
        "combines with the current allocations. Empty: mostly whole GPUs and some parts.",
    )
    managed_drivers: list[api_managed_drivers.ManagedDriver] = pydantic.Field(
        default=[],
        description="Drivers of the ManagedDrivers document: other DRA drivers whose devices the "
        "controller allocates, each with name and optionally nodeSelector (a label selector) and "
        "pools. Requires DeviceTaintRules.",
    )
    pod_disruption_budget: PodDisruptionBudget = pydantic.Field(
        default=PodDisruptionBudget(), description=parts.first_line(PodDisruptionBudget)
    )
    web: Web = pydantic.Field(default=Web(), description=parts.first_line(Web))


class PluginOwn(parts.Component):
    """The kubelet plugin: publishes each node's GPUs and prepares them."""

    enabled: bool = pydantic.Field(
        default=True,
        description="Deploy the kubelet plugin. Without it the controller allocates the devices of "
        "controller.managedDrivers alone.",
    )
    offerings: list[offered.Rule] = pydantic.Field(
        default=[],
        description="Rules of the NodeOfferings document: the device variants as which GPUs are "
        "published.",
    )


class MpsOwn(parts.Component):
    """The MPS supervisor: runs the MPS daemons of each node."""

    enabled: bool = pydantic.Field(
        default=True,
        description="Deploy the MPS supervisor. Without it no MPS devices are published.",
    )


class Tls(parts.Part):
    """The webhook's certificate."""

    mode: Literal["self", "cert-manager", "secret"] = pydantic.Field(
        default="self",
        description="Source of the certificate. self: issued and renewed by the webhook; "
        "cert-manager: by a Certificate; secret: from an existing Secret.",
    )
    secret_name: parts.NameOrNone = pydantic.Field(
        default="",
        description="Name of the kubernetes.io/tls Secret. Default: derived from the component's "
        "name.",
    )
    ca_bundle: str = pydantic.Field(
        default="", description="CA bundle in PEM that verifies the certificate, for mode secret."
    )
    issuer_ref: parts.Free = pydantic.Field(
        default={},
        description="cert-manager issuer, for mode cert-manager. Empty: a self-signed issuer.",
    )


class AdmissionOwn(parts.Component):
    """The webhook: refuses what no node could prepare, converts device plugins' resources."""

    enabled: bool = pydantic.Field(
        default=True,
        description="Deploy the webhook. Without it nodes reject invalid configuration later.",
    )
    replicas: Annotated[int, pydantic.Field(ge=1, le=9)] = pydantic.Field(
        default=2, description="Number of replicas, all of which serve."
    )
    port: Annotated[int, pydantic.Field(ge=1, le=65535)] = pydantic.Field(
        default=8443, description="Container port of the webhook."
    )
    tls: Tls = pydantic.Field(default=Tls(), description=parts.first_line(Tls))
    failure_policy: Literal["Ignore", "Fail"] = pydantic.Field(
        default="Ignore",
        description="failurePolicy of the validating webhook for claims and classes.",
    )
    convert: Literal["auto", "on", "off"] = pydantic.Field(
        default="auto",
        description="Convert pods that request nvidia.com/gpu, gpu.shared or mig-*, or extended "
        "resources of DeviceClasses with the label ration.dev/convert=true, to claims. auto: if "
        "the controller allocates; without the kubelet plugin only on. The namespace label "
        "ration.dev/convert=false disables it.",
    )
    gate: bool = pydantic.Field(
        default=True,
        description="Gate new pods until the controller's first decision, to save kube-scheduler "
        "futile attempts. The namespace label ration.dev/gate=false disables it.",
    )
    pod_disruption_budget: PodDisruptionBudget = pydantic.Field(
        default=PodDisruptionBudget(), description=parts.first_line(PodDisruptionBudget)
    )

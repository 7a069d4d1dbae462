"""Values of the programs that run, beside their flags: controller, kubelet plugin, MPS, webhook."""

from typing import Annotated, Literal

import pydantic

from driver.api import offerings as offered
from driver.api import workload_mix as api_workload_mix
from hack.chart import parts


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
    workload_mix: list[api_workload_mix.Workload] = pydantic.Field(
        default=[],
        description="Workloads of a WorkloadMix document: what is usually asked, which counts "
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


class MpsOwn(parts.Component):
    """The MPS supervisor: runs the MPS daemons of each node."""

    enabled: bool = pydantic.Field(
        default=True, description="Run it; without it no face for MPS is published."
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

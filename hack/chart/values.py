"""Every value of the chart: type, bounds, default, meaning. Flags come from the driver's settings.

`values.yaml`, `values.schema.json` and the reference page are generated from here.
"""

from typing import Annotated, Any

import pydantic

from driver import names
from driver.controller.config import ControllerConfig
from driver.devices import xids
from driver.kubeletplugin.config import PluginConfig
from driver.mps.config import SupervisorConfig
from driver.resources import gpu_nodes
from driver.runtime.files import driver_search
from driver.webhook.config import AdmissionConfig
from hack.chart import beside, classes, components, nodes, parts

_HARDENED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_PRIVILEGED = {"privileged": True, "readOnlyRootFilesystem": True}
_JUDGED = rf"^\d+=({'|'.join(xids.XidClass)})$"
_HOOK = r"^(auto|none|(/[A-Za-z0-9_+-][A-Za-z0-9_.+-]*)+)$"
_LABEL = r"^([a-z0-9.-]+/)?[A-Za-z0-9][A-Za-z0-9._-]*(=[A-Za-z0-9._-]*)?$"
_NODE_TOLERATIONS = [{"operator": "Exists"}]


class Image(parts.Part):
    """The image of every component."""

    repository: Annotated[str, pydantic.Field(min_length=1)] = pydantic.Field(
        default="ration", description="Image repository, including the registry host."
    )
    tag: str = pydantic.Field(default="", description="Image tag. Default: the chart's appVersion.")
    digest: Annotated[str, pydantic.Field(pattern=r"^$|^sha256:[0-9a-f]{64}$")] = pydantic.Field(
        default="", description="Image digest (sha256:...), used instead of the tag."
    )
    pull_policy: parts.PullPolicy = pydantic.Field(
        default="IfNotPresent", description="Image pull policy."
    )


class Common(parts.Part):
    """The values of the chart; none has to be set."""

    name_override: parts.NameOrNone = pydantic.Field(
        default="", description="Replaces the chart's name in names and labels."
    )
    fullname_override: parts.NameOrNone = pydantic.Field(
        default="", description="Replaces the release's and the chart's name in names."
    )
    common_labels: dict[str, str] = pydantic.Field(
        default={}, description="Additional labels of all objects."
    )
    image: Image = pydantic.Field(default=Image(), description=parts.first_line(Image))
    image_pull_secrets: list[parts.Free] = pydantic.Field(
        default=[], description="Image pull secrets: [{name: ...}]."
    )
    driver_name: Annotated[str, pydantic.Field(max_length=63, pattern=parts.DNS_SUBDOMAIN)] = (
        pydantic.Field(
            default=names.DRIVER,
            description="Name of the DRA driver, from which the names of DeviceClasses derive. "
            "With gpu.nvidia.com the classes of whole GPUs and of MIG have NVIDIA's names.",
        )
    )
    kubelet_root: parts.HostPath = pydantic.Field(
        default="/var/lib/kubelet", description="Root directory of the kubelet."
    )
    cdi_root: parts.HostPath = pydantic.Field(
        default="/var/run/cdi", description="CDI spec directory of the container runtime."
    )
    state_dir: parts.HostPath = pydantic.Field(
        default="/var/lib/ration", description="Host directory of a node's records."
    )
    driver_root: parts.HostPathOrAuto = pydantic.Field(
        default=driver_search.AUTO,
        description="Root of the NVIDIA driver's files on the nodes; auto: on each node the first "
        f"of {', '.join(driver_search.PLACES)} that has libnvidia-ml.so.1.",
    )
    gpu_node_labels: list[Annotated[str, pydantic.Field(pattern=_LABEL)]] = pydantic.Field(
        default=[*gpu_nodes.LABELS],
        description="Labels, `key` or `key=value`, any of which selects nodes for the kubelet "
        "plugin and the MPS supervisor; empty: all nodes. A nodeSelector or affinity of these "
        "components replaces it.",
    )


def _resources(cpu: str, memory: str) -> parts.Free:
    return {"requests": {"cpu": cpu, "memory": memory}}


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
            components.ControllerOwn,
            parts.flags(
                ControllerConfig,
                "write_workers",
                "unschedulable_timeout_seconds",
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
            components.PluginOwn,
            parts.flags(
                PluginConfig,
                "share_domain",
                "allow_device_plugin",
                "evict_on_gpu_fault",
                "reset_gpus",
                "health_poll_seconds",
                "rediscover_seconds",
                "usage_interval_seconds",
                "nvml_timeout_seconds",
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
            components.MpsOwn,
            parts.flags(
                SupervisorConfig, "desired_state_poll_seconds", "poll_seconds", "log_level"
            ),
        ),
        resources=_resources("10m", "48Mi"),
        tolerations=_NODE_TOLERATIONS,
        **_OF_NODES,
    ),
    "admission": parts.held(
        parts.table(
            "Admission",
            components.AdmissionOwn,
            parts.flags(AdmissionConfig, "template_ttl_seconds", "log_level"),
        ),
        resources=_resources("50m", "128Mi"),
        **_OF_DEPLOYMENTS,
    ),
    "device_classes": parts.held(classes.DeviceClasses),
    "crds": parts.held(beside.Crds),
    "policies": parts.held(beside.Policies),
    "network_policy": parts.held(beside.NetworkPolicy),
    "service_monitor": parts.held(beside.ServiceMonitor),
    "prometheus_rule": parts.held(beside.PrometheusRule),
    "dashboards": parts.held(beside.Dashboards),
    "openshift": parts.held(beside.OpenShift),
    "critical_pods_quota": parts.held(beside.CriticalPodsQuota),
    "uninstall": parts.held(beside.Uninstall),
    "tests": parts.held(beside.Tests),
}
Values = parts.table("Values", Common, parts.flags(PluginConfig, "allocator") | _SECTIONS)


def defaults() -> dict[str, Any]:
    """The values as they stand without any said, spelled as in values.yaml."""
    return Values().model_dump(mode="json", by_alias=True)

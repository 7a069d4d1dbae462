"""The plugin's settings: flag, else environment (`RATION_` and the flag), else default."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

import pydantic

from driver import errors, names
from driver.devices import xids
from driver.runtime import settings
from driver.runtime.files import driver_search

_CONTROL = {chr(code) for code in range(32)} | {"/"}


class PluginConfig(settings.ClusterSettings):
    """Publishes this node's GPUs and prepares the devices of allocated claims."""

    PROGRAM: ClassVar[str] = "ration-kubeletplugin"

    node_name: str = pydantic.Field(
        default_factory=lambda: os.environ.get("NODE_NAME", ""),
        description="Name of this node. Default: $NODE_NAME.",
    )
    driver_name: str = pydantic.Field(
        default=names.DRIVER, description="Name of the DRA driver that this plugin registers."
    )
    kubelet_root: Path = pydantic.Field(
        default=Path("/var/lib/kubelet"),
        description="Root directory of the kubelet, which holds the plugin sockets.",
    )
    cdi_root: Path = pydantic.Field(
        default=Path("/var/run/cdi"), description="Directory to which CDI specs are written."
    )
    state_dir: Path = pydantic.Field(
        default=Path("/var/lib/ration"), description="Directory of this node's claim records."
    )
    mps_dir: Path = pydantic.Field(
        default=Path("/var/lib/ration/mps"),
        description="The --state-dir of the MPS supervisor, for its desired and status files.",
    )
    driver_root: driver_search.Setting = pydantic.Field(
        default=driver_search.AUTO,
        description="Root of the NVIDIA driver installation, as seen by this process. auto: the "
        f"first of {', '.join(driver_search.PLACES)} below --host-root that has NVML.",
    )
    host_root: Path = pydantic.Field(
        default=Path("/"),
        description="Directory at which the host's root file system is mounted (/proc, /sys, "
        "/dev). It is stripped from a --driver-root below it to get the host path.",
    )
    cdi_hook: str = pydantic.Field(
        default="auto",
        description="Host path of the container toolkit's nvidia-cdi-hook, 1.17.8 or newer. auto: "
        "search the default locations; none: no hooks.",
    )
    allocator: Literal["controller", "scheduler"] = pydantic.Field(
        default="controller",
        description="Allocator of this node's devices: controller or scheduler (kube-scheduler). "
        f"The node label {names.ALLOCATOR_LABEL} overrides it.",
    )
    allow_device_plugin: bool = pydantic.Field(
        default=False,
        description="Publish GPUs even if a device plugin serves GPUs of this node. Set it only "
        "if that plugin serves other GPUs. By default nothing is published while it does.",
    )
    offerings: Path | None = pydantic.Field(
        default=None,
        description="Path of a NodeOfferings document (YAML): the device variants as which GPUs "
        "are published.",
    )
    share_domain: Literal["none", "cluster"] = pydantic.Field(
        default="none",
        description="Whether GPUs that kube-scheduler allocates may be shared: none, or cluster "
        "(across all namespaces, since kube-scheduler does not check them).",
    )
    xid_class: tuple[str, ...] = pydantic.Field(
        default=(),
        description="Override of the class of an Xid, CODE=CLASS, such as 109=application. May be "
        "repeated.",
    )
    evict_on_gpu_fault: bool = pydantic.Field(
        default=False,
        description="Evict pods from faulty GPUs, by taints with effect NoExecute.",
    )
    reset_gpus: bool = pydantic.Field(
        default=False,
        description="Reset GPUs that report that they need it (NVML field 230) while they are "
        "idle. NVML calls, including those of every Prepare, block during a reset.",
    )
    health_poll_seconds: float = pydantic.Field(
        default=5.0,
        gt=0,
        description="Interval in seconds between polls of GPU health, in addition to events.",
    )
    nvml_timeout_seconds: float = pydantic.Field(
        default=8.0,
        gt=0,
        description="Timeout in seconds of one NVML call. A GPU that exceeds it is tainted as "
        "hung, and no other call is made for it until that call returns.",
    )
    instance: str = pydantic.Field(
        default="",
        description="UID of this pod, which makes socket names unique during rolling updates. "
        "Default: fixed socket names.",
    )
    rediscover_seconds: float = pydantic.Field(
        default=60.0, gt=0, description="Interval in seconds between rediscoveries of the GPUs."
    )

    usage_interval_seconds: float = pydantic.Field(
        default=10.0,
        gt=0,
        description="Interval in seconds between samples of the GPU use of claims.",
    )

    @property
    def xid_classes(self) -> Mapping[int, xids.XidClass]:
        """Return the overrides of the Xid table."""
        return xids.parse_overrides(self.xid_class)

    @pydantic.field_validator("xid_class")
    @classmethod
    def _check_xid_class(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        try:
            xids.parse_overrides(value)
        except errors.BadInput as e:
            raise ValueError(f"{e.problem}; expected {e.expected}") from e
        return value

    @pydantic.field_validator("cdi_hook")
    @classmethod
    def _check_cdi_hook(cls, value: str) -> str:
        if value not in {"auto", "none"} and not re.fullmatch(
            r"(?:/[A-Za-z0-9_+-][A-Za-z0-9_.+-]*)+", value
        ):
            raise ValueError(f"{value!r} is neither auto, none nor a plain absolute path")
        return value

    @pydantic.field_validator("node_name")
    @classmethod
    def _check_node_name(cls, value: str) -> str:
        if not value:
            raise ValueError("is missing; expected the node's name, or NODE_NAME set")
        return value

    @pydantic.field_validator("node_name", "driver_name", "instance")
    @classmethod
    def _check_path_part(cls, value: str) -> str:
        if value.startswith(".") or _CONTROL & set(value):
            raise ValueError(f"{value!r} cannot be part of a file's name")
        return value

    @pydantic.field_validator(
        "kubelet_root", "cdi_root", "state_dir", "mps_dir", "driver_root", "host_root"
    )
    @classmethod
    def _check_absolute(cls, value: Path | str) -> Path | str:
        if isinstance(value, Path) and not value.is_absolute():
            raise ValueError(f"{str(value)!r} is no absolute path")
        return value

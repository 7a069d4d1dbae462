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
    """Publishes this node's GPUs and prepares them for the pods that were given them."""

    PROGRAM: ClassVar[str] = "ration-kubeletplugin"

    node_name: str = pydantic.Field(
        default_factory=lambda: os.environ.get("NODE_NAME", ""),
        description="Name of this node; NODE_NAME by default.",
    )
    driver_name: str = pydantic.Field(
        default=names.DRIVER, description="Name of the DRA driver that this plugin is."
    )
    kubelet_root: Path = pydantic.Field(
        default=Path("/var/lib/kubelet"), description="The kubelet's directory; holds the sockets."
    )
    cdi_root: Path = pydantic.Field(
        default=Path("/var/run/cdi"), description="Where CDI specs are written."
    )
    state_dir: Path = pydantic.Field(
        default=Path("/var/lib/ration"), description="Where this node's records are kept."
    )
    mps_dir: Path = pydantic.Field(
        default=Path("/var/lib/ration/mps"),
        description="The MPS supervisor's --state-dir: what is wanted of it, and what it says.",
    )
    driver_root: driver_search.Setting = pydantic.Field(
        default=driver_search.AUTO,
        description="Root of the NVIDIA driver's files, as this process sees it; auto: the first "
        f"of {', '.join(driver_search.PLACES)} below --host-root that has NVML.",
    )
    host_root: Path = pydantic.Field(
        default=Path("/"),
        description="Root of the host's /proc, /sys and /dev; a --driver-root below it is on the "
        "host without it.",
    )
    cdi_hook: str = pydantic.Field(
        default="auto",
        description="The container toolkit's nvidia-cdi-hook, a path of the host; "
        "auto: where it is usually installed, if it is, from version 1.17.8 on; none: no hooks.",
    )
    allocator: Literal["controller", "scheduler"] = pydantic.Field(
        default="controller",
        description=f"Who allocates; the node's label {names.ALLOCATOR_LABEL} overrides it.",
    )
    allow_device_plugin: bool = pydantic.Field(
        default=False,
        description="Publish GPUs even if a device plugin serves GPUs of this node. Set it only "
        "if that plugin serves other GPUs. By default nothing is published while it does.",
    )
    offerings: Path | None = pydantic.Field(
        default=None,
        description="NodeOfferings document (YAML): which faces which GPUs are published as.",
    )
    share_domain: Literal["none", "cluster"] = pydantic.Field(
        default="none",
        description="Whether kube-scheduler, which knows no namespaces in this, may share GPUs.",
    )
    xid_class: tuple[str, ...] = pydantic.Field(
        default=(),
        description="CODE=CLASS, for an Xid that is to be judged otherwise: 109=application.",
    )
    evict_on_gpu_fault: bool = pydantic.Field(
        default=False,
        description="Evict pods (NoExecute) from GPUs that are broken or take their node down.",
    )
    reset_gpus: bool = pydantic.Field(
        default=False,
        description="Reset a GPU that asks for it (field 230) while nothing is on it; "
        "NVML, and with it every Prepare, waits meanwhile.",
    )
    health_poll_seconds: float = pydantic.Field(
        default=5.0, gt=0, description="How often the GPUs' health is asked for, beside events."
    )
    nvml_timeout_seconds: float = pydantic.Field(
        default=8.0,
        gt=0,
        description="How long one call of NVML may take before its GPU counts as hung: it is "
        "tainted, and nothing else is asked of it until the call returns.",
    )
    instance: str = pydantic.Field(
        default="", description="UID of this pod, for rolling updates; empty for fixed sockets."
    )
    rediscover_seconds: float = pydantic.Field(
        default=60.0, gt=0, description="How often the GPUs are looked at again."
    )

    usage_interval_seconds: float = pydantic.Field(
        default=10.0, gt=0, description="How often it is looked at what claims use of their GPUs."
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

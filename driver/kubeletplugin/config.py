"""The plugin's settings: flag, else environment (`RATION_` and the flag), else default."""

import os
from pathlib import Path
from typing import Literal

import pydantic
import pydantic_settings

from driver import names, settings

_CONTROL = {chr(code) for code in range(32)} | {"/"}


class PluginConfig(settings.ProcessSettings):
    """Publishes this node's GPUs and prepares them for the pods that were given them."""

    model_config = pydantic_settings.SettingsConfigDict(cli_prog_name="ration-kubeletplugin")

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
    driver_root: Path = pydantic.Field(
        default=Path("/"), description="Root of the NVIDIA driver's files, as this process sees it."
    )
    host_root: Path = pydantic.Field(
        default=Path("/"), description="Root of the host's /proc, /sys and /dev."
    )
    allocator: Literal["controller", "scheduler"] = pydantic.Field(
        default="controller",
        description=f"Who allocates; the node's label {names.ALLOCATOR_LABEL} overrides it.",
    )
    offerings: Path | None = pydantic.Field(
        default=None,
        description="NodeOfferings document (YAML): which faces which GPUs are published as.",
    )
    share_domain: Literal["none", "cluster"] = pydantic.Field(
        default="none",
        description="Whether kube-scheduler, which knows no namespaces in this, may share GPUs.",
    )
    instance: str = pydantic.Field(
        default="", description="UID of this pod, for rolling updates; empty for fixed sockets."
    )
    rediscover_seconds: float = pydantic.Field(
        default=60.0, gt=0, description="How often the GPUs are looked at again."
    )

    @pydantic.field_validator("node_name")
    @classmethod
    def _named(cls, value: str) -> str:
        if not value:
            raise ValueError("is missing; expected the node's name, or NODE_NAME set")
        return value

    @pydantic.field_validator("node_name", "driver_name", "instance")
    @classmethod
    def _part_of_a_path(cls, value: str) -> str:
        if value.startswith(".") or _CONTROL & set(value):
            raise ValueError(f"{value!r} cannot be part of a file's name")
        return value

    @pydantic.field_validator("kubelet_root", "cdi_root", "state_dir", "driver_root", "host_root")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        if not value.is_absolute():
            raise ValueError(f"{str(value)!r} is no absolute path")
        return value

"""The plugin's settings: flag, else environment (`RATION_` and the flag), else default."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

import pydantic
import pydantic_settings

from driver import errors, names
from driver.telemetry import logs

_CONTROL = {chr(code) for code in range(32)} | {"/"}


class PluginConfig(pydantic_settings.BaseSettings):
    """Publishes this node's GPUs and prepares them for the pods that were given them."""

    model_config = pydantic_settings.SettingsConfigDict(
        env_prefix="RATION_",
        extra="forbid",
        frozen=True,
        validate_default=True,
        cli_prog_name="ration-kubeletplugin",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_hide_none_type=True,
    )

    kubeconfig: Path | None = pydantic.Field(
        default=None, description="Path of a kubeconfig; without it, the pod's own credentials."
    )
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
    instance: str = pydantic.Field(
        default="", description="UID of this pod, for rolling updates; empty for fixed sockets."
    )
    rediscover_seconds: float = pydantic.Field(
        default=60.0, gt=0, description="How often the GPUs are looked at again."
    )
    metrics_address: str = pydantic.Field(
        default="127.0.0.1:0", description="address:port of /metrics, /healthz and /readyz."
    )
    log_level: Literal["debug", "info", "warning", "error"] = pydantic.Field(
        default="info", description=f"{', '.join(logs.LEVELS)}."
    )

    @classmethod
    def read(cls, arguments: Sequence[str]) -> Self:
        """The settings of a command line and the environment.

        Raises:
            BadInput: a value makes no sense; the text names every such flag.
        """
        try:
            return cls(_cli_parse_args=list(arguments))
        except pydantic.ValidationError as e:
            found = [f"{_flag(one['loc'])} {_problem(one['msg'])}" for one in e.errors()]
            raise errors.BadInput("settings", "; ".join(found)) from e

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

    @pydantic.field_validator("metrics_address")
    @classmethod
    def _address_and_port(cls, value: str) -> str:
        host, _, port = value.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"{value!r} is not address:port")
        return value

    @property
    def metrics_host_port(self) -> tuple[str, int]:
        """The address and the port apart."""
        host, _, port = self.metrics_address.rpartition(":")
        return host, int(port)


def _flag(location: tuple[int | str, ...]) -> str:
    return "--" + "-".join(str(part) for part in location[:1]).replace("_", "-")


def _problem(text: str) -> str:
    """Pydantic's words, as the tail of a sentence that begins with the flag."""
    own = text.removeprefix("Value error, ")
    return own if own != text else f"is wrong: {text}"

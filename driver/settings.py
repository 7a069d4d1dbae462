"""The settings that every process has, and how they are read: flag, environment, default."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

import pydantic
import pydantic_settings

from driver import errors


class ProcessSettings(pydantic_settings.BaseSettings):
    """A flag wins over `RATION_<FLAG>` in the environment, which wins over the default."""

    model_config = pydantic_settings.SettingsConfigDict(
        env_prefix="RATION_",
        extra="forbid",
        frozen=True,
        validate_default=True,
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_hide_none_type=True,
    )

    metrics_address: str = pydantic.Field(
        default="127.0.0.1:0", description="address:port of /metrics, /healthz and /readyz."
    )
    log_level: Literal["debug", "info", "warning", "error"] = pydantic.Field(
        default="info", description="debug, info, warning or error."
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


class ClusterSettings(ProcessSettings):
    """Those of a process that talks to the API server."""

    kubeconfig: Path | None = pydantic.Field(
        default=None, description="Path of a kubeconfig; without it, the pod's own credentials."
    )


def _flag(location: tuple[int | str, ...]) -> str:
    return "--" + "-".join(str(part) for part in location[:1]).replace("_", "-")


def _problem(text: str) -> str:
    """Pydantic's words, as the tail of a sentence that begins with the flag."""
    own = text.removeprefix("Value error, ")
    return own if own != text else f"is wrong: {text}"

"""The settings that every process has, and how they are read: flag, environment, default.

Flags come from the models' fields by argparse. pydantic-settings would do the same, and takes 16
MiB of each plugin's memory for it.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_origin

import pydantic
from pydantic.fields import FieldInfo

from driver import errors

ENVIRONMENT = "RATION_"


class ProcessSettings(pydantic.BaseModel):
    """A flag wins over `RATION_<FLAG>` in the environment, which wins over the default.

    A field of several values may be given several times, and in the environment with commas.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, validate_default=True)
    PROGRAM: ClassVar[str] = "ration"

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
            SystemExit: `--help` was answered, or a flag is not known: argparse has told.
        """
        given = vars(_parser(cls).parse_args(arguments))
        try:
            return cls.model_validate({**_environment(cls), **given})
        except pydantic.ValidationError as e:
            found = [
                f"{_location_flag(one['loc'])} {_problem_text(one['msg'])}" for one in e.errors()
            ]
            raise errors.BadInput("settings", "; ".join(found)) from e

    @pydantic.field_validator("metrics_address")
    @classmethod
    def _check_address(cls, value: str) -> str:
        host_port(value)
        return value

    @property
    def metrics_host_port(self) -> tuple[str, int]:
        """The address and the port apart."""
        return host_port(self.metrics_address)


class ClusterSettings(ProcessSettings):
    """Those of a process that talks to the API server."""

    kubeconfig: Path | None = pydantic.Field(
        default=None, description="Path of a kubeconfig; without it, the pod's own credentials."
    )


def host_port(text: str) -> tuple[str, int]:
    """The address and the port of `address:port`. Raises ValueError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"{text!r} is not address:port")
    return host, int(port)


def field_flag(name: str) -> str:
    """`--node-name` of the field `node_name`."""
    return "--" + name.replace("_", "-")


def _parser(model: type[ProcessSettings]) -> argparse.ArgumentParser:
    """What is not given is left out, so that the environment and the defaults may speak."""
    parser = argparse.ArgumentParser(
        prog=model.PROGRAM,
        description=(model.__doc__ or "").strip(),
        epilog=f"Each flag may be given as {ENVIRONMENT}<FLAG> in the environment instead.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    for name, field in model.model_fields.items():
        parser.add_argument(
            field_flag(name), dest=name, help=_help_text(field), **_argument_kind(field)
        )
    return parser


def _argument_kind(field: FieldInfo) -> dict[str, Any]:
    if field.annotation is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(field.annotation) is tuple:
        return {"action": "append", "metavar": "VALUE"}
    return {"metavar": "VALUE"}


def _help_text(field: FieldInfo) -> str:
    text = (field.description or "").replace("%", "%%")
    told = field.default not in (None, "", ()) and field.default_factory is None
    return f"{text} (default: {field.default})" if told else text


def _environment(model: type[ProcessSettings]) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for name, field in model.model_fields.items():
        value = os.environ.get(ENVIRONMENT + name.upper())
        if value is None:
            continue
        several = get_origin(field.annotation) is tuple
        found[name] = [one for one in value.split(",") if one] if several else value
    return found


def _location_flag(location: tuple[int | str, ...]) -> str:
    return field_flag("-".join(str(part) for part in location[:1]))


def _problem_text(text: str) -> str:
    """Pydantic's words, as the tail of a sentence that begins with the flag."""
    own = text.removeprefix("Value error, ")
    return own if own != text else f"is wrong: {text}"

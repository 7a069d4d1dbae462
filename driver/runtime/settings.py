"""Settings of every process, read from flag, environment, default.

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
from driver.runtime import renamed

ENVIRONMENT = "RATION_"


class ProcessSettings(pydantic.BaseModel):
    """A flag wins over `RATION_<FLAG>` in the environment, which wins over the default.

    A field of several values may be given several times, and in the environment with commas.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, validate_default=True)
    PROGRAM: ClassVar[str] = "ration"

    metrics_address: str = pydantic.Field(
        default="127.0.0.1:0",
        description="Listen address (address:port) of /metrics, /healthz and /readyz.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = pydantic.Field(
        default="info", description="Log level: debug, info, warning or error."
    )

    @classmethod
    def read(cls, arguments: Sequence[str]) -> Self:
        """Read the settings of a command line and the environment.

        Raises:
            BadInput: a value is invalid, or a name is a former one; the text names every such flag.
            SystemExit: `--help` was answered, or a flag is unknown: argparse has reported it.
        """
        former = "; ".join(renamed.find(cls.model_fields, arguments, ENVIRONMENT))
        if former:
            raise errors.BadInput("settings", former)
        flags = vars(_parser(cls).parse_args(arguments))
        try:
            return cls.model_validate({**_environment(cls), **flags})
        except pydantic.ValidationError as e:
            problems = [
                f"{_location_flag(error['loc'])} {_problem_text(error['msg'])}"
                for error in e.errors()
            ]
            raise errors.BadInput("settings", "; ".join(problems)) from e

    @pydantic.field_validator("metrics_address")
    @classmethod
    def _check_address(cls, value: str) -> str:
        host_port(value)
        return value

    @property
    def metrics_host_port(self) -> tuple[str, int]:
        """Return the address and the port separately."""
        return host_port(self.metrics_address)


class ClusterSettings(ProcessSettings):
    """Settings of a process that talks to the API server."""

    kubeconfig: Path | None = pydantic.Field(
        default=None, description="Path of a kubeconfig. Default: the pod's service account."
    )


def host_port(text: str) -> tuple[str, int]:
    """Return the address and the port of `address:port`. Raises ValueError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"{text!r} is not address:port")
    return host, int(port)


def field_flag(name: str) -> str:
    """Return `--node-name` for the field `node_name`."""
    return "--" + name.replace("_", "-")


def _parser(model: type[ProcessSettings]) -> argparse.ArgumentParser:
    """Build the parser; flags not given are absent, so that environment and defaults apply."""
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
    has_default = field.default not in (None, "", ()) and field.default_factory is None
    return f"{text} (default: {field.default})" if has_default else text


def _environment(model: type[ProcessSettings]) -> Mapping[str, object]:
    variables: dict[str, object] = {}
    for name, field in model.model_fields.items():
        value = os.environ.get(ENVIRONMENT + name.upper())
        if value is None:
            continue
        is_list = get_origin(field.annotation) is tuple
        variables[name] = [item for item in value.split(",") if item] if is_list else value
    return variables


def _location_flag(location: tuple[int | str, ...]) -> str:
    return field_flag("-".join(str(part) for part in location[:1]))


def _problem_text(text: str) -> str:
    """Return pydantic's message as the tail of a sentence that begins with the flag."""
    message = text.removeprefix("Value error, ")
    return message if message != text else f"is wrong: {text}"

"""What our own kinds (`ration.dev/v1alpha1`) have in common: strictness, amounts, durations.

Their models are the source of their CRDs' schemas (`hack/crds`). What one object can say wrong by
itself is refused by the API server; what needs other objects is told in a condition.
"""

import re
from typing import Annotated

import pydantic
from pydantic import alias_generators

VERSION = "ration.dev/v1alpha1"
_DURATION = re.compile(r"(?!$)(?:([0-9]{1,5})h)?(?:([0-9]{1,5})m)?(?:([0-9]{1,7})s)?")

Duration = Annotated[str, pydantic.Field(pattern=r"^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$")]
"""`90s`, `30m`, `1h30m`."""
GpuCount = Annotated[str, pydantic.Field(pattern=r"^[0-9]{1,7}(\.[0-9]{1,3})?$")]
"""GPUs, of which shares are parts: `4`, `0.5`."""
Memory = Annotated[
    str, pydantic.Field(pattern=r"^[0-9]{1,18}(\.[0-9]{1,9})?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$")
]
"""Bytes as a quantity: `320Gi`."""
Name = Annotated[
    str,
    pydantic.Field(
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        max_length=253,
    ),
]
"""An object's name (RFC 1123 subdomain)."""


def number(value: object) -> object:
    """YAML's `4` and `0.5` are counts too."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if known else value


class Strict(pydantic.BaseModel):
    """Of the API: unknown fields are refused; names are written in camel case."""

    model_config = pydantic.ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=alias_generators.to_camel,
        populate_by_name=True,
    )


def seconds(duration: str) -> float:
    """The seconds of a `Duration`; of "" none. Raises ValueError for anything else."""
    if not duration:
        return 0.0
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise ValueError(f"{duration!r} is no duration such as 90s, 30m or 1h30m")
    hours, minutes, rest = (int(one or 0) for one in found.groups())
    return float(hours * 3600 + minutes * 60 + rest)

"""Base of the `ration.dev/v1alpha1` kinds: strictness, amounts, durations.

Their models are the source of their CRDs' schemas (`hack/crds`). Errors within one object are
refused by the API server; errors that need other objects are reported in a condition.
"""

import re
from typing import Annotated, Literal, NamedTuple

import pydantic
from pydantic import alias_generators

VERSION = "ration.dev/v1alpha1"
_DURATION = re.compile(r"(?!$)(?:([0-9]{1,5})h)?(?:([0-9]{1,5})m)?(?:([0-9]{1,7})s)?")

Duration = Annotated[
    str,
    pydantic.Field(
        pattern=r"^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$", min_length=2, max_length=20
    ),
]
"""`90s`, `30m`, `1h30m`."""
Memory = Annotated[
    str,
    pydantic.Field(
        pattern=r"^[0-9]{1,18}(\.[0-9]{1,9})?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$", max_length=30
    ),
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
Time = Annotated[
    str,
    pydantic.Field(
        pattern=(
            r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
            r"(Z|[+-][0-9]{2}:[0-9]{2})$"
        ),
        max_length=40,
        json_schema_extra={"format": "date-time"},
    ),
]
"""RFC 3339."""
Labels = dict[str, Annotated[str, pydantic.Field(max_length=63)]]


def parse_amount(value: object) -> object:
    """YAML's `4` and `0.5` are counts too."""
    quantity = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if quantity else value


_COUNT = r"^[0-9]{1,7}(\.[0-9]{1,3})?$"
GpuCount = Annotated[
    str,
    pydantic.Field(pattern=_COUNT),
    pydantic.BeforeValidator(parse_amount),
    # The API server knows no number that is an integer or a decimal: a part is said as text.
    pydantic.WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "pattern": _COUNT,
            "minimum": 0,
            "maximum": 9_999_999,
            "maxLength": 11,
        }
    ),
]
"""GPUs, of which shares are parts: `4`, `"0.5"`."""


class Rule(NamedTuple):
    """CEL rule that the API server checks beyond types, its message and its field.

    `field` is a path below the table, "" the table itself.
    """

    expression: str
    message: str
    field: str = ""


def add_rules(*rules: Rule) -> pydantic.ConfigDict:
    """The configuration of a model whose objects are to keep these rules."""
    message: list[pydantic.JsonValue] = []
    for rule in rules:
        path: dict[str, pydantic.JsonValue] = {"fieldPath": rule.field} if rule.field else {}
        message.append({"rule": rule.expression, "message": rule.message, **path})
    return pydantic.ConfigDict(json_schema_extra={"x-kubernetes-validations": message})


class Strict(pydantic.BaseModel):
    """Model of the API: unknown fields are refused; names are in camel case."""

    model_config = pydantic.ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=alias_generators.to_camel,
        populate_by_name=True,
    )


class Condition(Strict):
    """One aspect of the object, as metav1.Condition has it."""

    type: Annotated[str, pydantic.Field(max_length=316, description="Type of the condition.")]
    status: Annotated[
        Literal["True", "False", "Unknown"], pydantic.Field(description="Status of the condition.")
    ]
    reason: Annotated[
        str, pydantic.Field(max_length=1024, description="CamelCase reason of the last transition.")
    ]
    message: Annotated[str, pydantic.Field(max_length=32768, description="Human-readable details.")]
    last_transition_time: Annotated[Time, pydantic.Field(description="When the status changed.")]
    observed_generation: Annotated[
        Annotated[int, pydantic.Field(ge=0)] | None,
        pydantic.Field(description="Generation of the spec that the condition refers to."),
    ] = None


Conditions = Annotated[
    tuple[Condition, ...],
    pydantic.Field(
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        }
    ),
]
"""At most one of a type."""


def seconds(duration: str) -> float:
    """The seconds of a `Duration`; of "" none. Raises ValueError for anything else."""
    if not duration:
        return 0.0
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise ValueError(f"{duration!r} is no duration such as 90s, 30m or 1h30m")
    hours, minutes, rest = (int(group or 0) for group in match.groups())
    return float(hours * 3600 + minutes * 60 + rest)

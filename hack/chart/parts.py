"""Parts that several values of the chart share."""

from typing import Annotated, Any, Literal

import pydantic
from pydantic import alias_generators
from pydantic.fields import FieldInfo

from driver.runtime import settings

Free = dict[str, Any]
"""Passed on as it is: Kubernetes' own schema judges it."""

DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_FOLDER = "[A-Za-z0-9_-][A-Za-z0-9_.-]*"
HostPath = Annotated[str, pydantic.Field(pattern=rf"^/(?:{_FOLDER}(?:/{_FOLDER})*)?$")]
"""An absolute path of the node, without a slash at its end, without dots at a part's start."""
HostPathOrAuto = Annotated[
    str, pydantic.Field(pattern=rf"^(?:auto|/(?:{_FOLDER}(?:/{_FOLDER})*)?)$")
]
NameOrNone = Annotated[str, pydantic.Field(max_length=253, pattern=rf"^$|{DNS_SUBDOMAIN}")]
PullPolicy = Literal["Always", "IfNotPresent", "Never"]


class Part(pydantic.BaseModel):
    """A table of values: spelled in camelCase, nothing unknown in it."""

    model_config = pydantic.ConfigDict(
        alias_generator=alias_generators.to_camel,
        populate_by_name=True,
        extra="forbid",
        strict=True,
        validate_default=True,
    )


class OwnImage(Part):
    """A component's image where it is not the common one."""

    repository: str = pydantic.Field(
        default="", description="Image repository. Default: image.repository."
    )
    tag: str = pydantic.Field(default="", description="Image tag. Default: image.tag.")
    digest: Annotated[str, pydantic.Field(pattern=r"^$|^sha256:[0-9a-f]{64}$")] = pydantic.Field(
        default="", description="Image digest (sha256:...), used instead of the tag."
    )
    pull_policy: Literal["", "Always", "IfNotPresent", "Never"] = pydantic.Field(
        default="", description="Image pull policy. Default: image.pullPolicy."
    )


class ServiceAccount(Part):
    """ServiceAccount of a component."""

    create: bool = pydantic.Field(
        default=True, description="Create the service account; false: use an existing one."
    )
    name: NameOrNone = pydantic.Field(
        default="", description="Name of the service account. Default: the component's name."
    )
    annotations: dict[str, str] = pydantic.Field(
        default={}, description="Annotations of the service account."
    )


class Component(Part):
    """What the pods of every component take."""

    image: OwnImage = pydantic.Field(default=OwnImage(), description="Its image, field by field.")
    service_account: ServiceAccount = pydantic.Field(
        default=ServiceAccount(), description="Its service account."
    )
    resources: Free = pydantic.Field(
        default={}, description="Resource requests and limits of the container."
    )
    node_selector: dict[str, str] = pydantic.Field(
        default={}, description="Node selector of its pods."
    )
    tolerations: list[Free] = pydantic.Field(default=[], description="Tolerations of its pods.")
    affinity: Free = pydantic.Field(default={}, description="Affinity of its pods.")
    priority_class_name: str = pydantic.Field(default="", description="PriorityClass of its pods.")
    pod_annotations: dict[str, str] = pydantic.Field(
        default={}, description="Annotations of its pods."
    )
    pod_labels: dict[str, str] = pydantic.Field(default={}, description="Labels of its pods.")
    pod_security_context: Free = pydantic.Field(
        default={}, description="Security context of its pods."
    )
    security_context: Free = pydantic.Field(
        default={}, description="Security context of its container."
    )
    extra_env: list[Free] = pydantic.Field(
        default=[], description="Additional environment variables."
    )
    extra_args: list[Annotated[str, pydantic.Field(pattern="^--")]] = pydantic.Field(
        default=[],
        description="Additional flags, appended to the chart's; see the flags reference.",
    )
    metrics_port: Annotated[int, pydantic.Field(ge=1, le=65535)] = pydantic.Field(
        default=8080, description="Container port of /metrics, /healthz and /readyz."
    )


Fields = dict[str, Any]
"""For pydantic.create_model: type and field by name."""


def flags(
    model: type[settings.ProcessSettings],
    *names: str,
    **narrowed: Any,  # noqa: ANN401 - types
) -> Fields:
    """Values that are flags of a process: type, bounds, default and description of each.

    `narrowed`: the type of those that the process itself checks by a validator.
    """
    found = {name: model.model_fields[name] for name in (*names, *narrowed)}
    return {
        name: (narrowed.get(name, field.annotation), _copy(field)) for name, field in found.items()
    }


def _copy(field: FieldInfo) -> FieldInfo:
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    made = FieldInfo(default=default, description=field.description)
    made.metadata = list(field.metadata)
    return made


def table(name: str, base: type[Part], fields: Fields) -> type[Part]:
    """A table made of a base and of more fields."""
    return pydantic.create_model(name, __base__=base, __doc__=base.__doc__, **fields)


def held(part: type[Part], **defaults: Any) -> Any:  # noqa: ANN401 - see Fields
    """A field that holds such a table, with these defaults in place of its own."""
    return part, FieldInfo(default=part(**defaults), description=first_line(part))


def first_line(part: type[Part]) -> str:
    """What a table says of itself."""
    return (part.__doc__ or "").strip().splitlines()[0]

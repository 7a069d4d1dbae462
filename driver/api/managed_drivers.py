"""`ManagedDrivers`: other DRA drivers whose devices the controller allocates (D2).

    apiVersion: resource.ration.dev/v1alpha1
    kind: ManagedDrivers
    drivers:
    - name: nic.example.com
    - {name: gpu.example.com, nodeSelector: "ration.dev/allocator=controller"}
    - {name: fpga.example.com, pools: [rack-1, rack-2]}

Without `nodeSelector` and `pools` a driver is managed on every node, new ones included.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

import pydantic

from driver import names
from driver.api import validation

_MAX_DRIVERS = 64
_MAX_POOLS = 1024
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_PoolName = Annotated[
    str,
    pydantic.Field(max_length=253, pattern=rf"^{_SUBDOMAIN}(/{_SUBDOMAIN})*$"),
]


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class ManagedDriver(_Strict):
    """A driver and the part of its devices that is managed."""

    name: Annotated[
        str,
        pydantic.Field(
            max_length=63, pattern=rf"^{_SUBDOMAIN}$", description="Name of the DRA driver."
        ),
    ]
    nodeSelector: Annotated[  # noqa: N815 - the API's spelling
        Annotated[str, pydantic.Field(min_length=1, max_length=4096)] | None,
        pydantic.Field(
            description="Label selector of nodes: only pools of matching nodes are managed."
        ),
    ] = None
    pools: Annotated[
        Annotated[tuple[_PoolName, ...], pydantic.Field(min_length=1, max_length=_MAX_POOLS)]
        | None,
        pydantic.Field(description="Pool names: only these pools are managed."),
    ] = None

    @pydantic.field_validator("pools")
    @classmethod
    def _distinct_pools(cls, pools: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for index, pool in enumerate(pools or ()):
            if pool in (pools or ())[:index]:
                raise ValueError(f"pool {pool} is listed twice")
        return pools


class ManagedDrivers(_Strict):
    """The document."""

    apiVersion: Literal["resource.ration.dev/v1alpha1"] = names.CONFIG_VERSION  # noqa: N815 - the API's spelling
    kind: Literal["ManagedDrivers"] = "ManagedDrivers"
    drivers: Annotated[
        tuple[ManagedDriver, ...], pydantic.Field(min_length=1, max_length=_MAX_DRIVERS)
    ]

    @pydantic.model_validator(mode="after")
    def _distinct_drivers(self) -> Self:
        for index, driver in enumerate(self.drivers):
            if any(driver.name == other.name for other in self.drivers[:index]):
                raise ValueError(f"drivers.{index}.name: {driver.name} is listed twice")
        return self


def read(document: Mapping[str, object], path: str) -> ManagedDrivers:
    """Read the document.

    Raises:
        BadInput: the problem, and its path under `path`.
    """
    return validation.read(ManagedDrivers, document, path)

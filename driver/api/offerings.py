"""`NodeOfferings`: which faces the GPUs of which nodes are published as (D1).

    apiVersion: resource.ration.dev/v1alpha1
    kind: NodeOfferings
    rules:
    - timeSlices: 10
    - nodes: ["train-*"]
      gpus: {product: ["*H100*"]}
      faces: [whole, mig]

Rules are read in order; each field that a matching rule sets replaces what stood before.
"""

import fnmatch
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

import pydantic

from driver import names
from driver.api import validation
from driver.devices import faces as published
from driver.devices import model

MAX_MPS_SHARES = 48
"""Clients of one MPS server that every driver allows (D1)."""
_MAX_SHARES = 1024
_MAX_FACTOR = 64

_Patterns = tuple[Annotated[str, pydantic.Field(min_length=1)], ...]


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class GpuSelector(_Strict):
    """GPUs by any of their names; what is not said matches all. Patterns take `*` and `?`."""

    uuid: _Patterns = ()
    pci: _Patterns = ()
    product: _Patterns = ()
    index: tuple[Annotated[int, pydantic.Field(ge=0)], ...] = ()

    def matches(self, gpu: model.Gpu) -> bool:
        """Return whether every given field matches the GPU."""
        return (
            _fits(self.uuid, gpu.uuid)
            and _fits(self.pci, gpu.pci)
            and _fits(self.product, gpu.product)
            and (not self.index or gpu.index in self.index)
        )


class Rule(_Strict):
    """Device variants to publish of the selected GPUs; absent fields change nothing."""

    nodes: _Patterns = ()
    gpus: GpuSelector = GpuSelector()
    faces: frozenset[published.Kind] | None = None
    mig: published.MigMode | None = None
    mpsShares: Annotated[int, pydantic.Field(ge=1, le=MAX_MPS_SHARES)] | None = None  # noqa: N815 - the document's spelling
    timeSlices: Annotated[int, pydantic.Field(ge=1, le=_MAX_SHARES)] | None = None  # noqa: N815 - as above
    memoryFactor: Annotated[Decimal, pydantic.Field(ge=1, le=_MAX_FACTOR)] | None = None  # noqa: N815 - as above


class NodeOfferings(_Strict):
    """The document; without rules everything is offered as by default."""

    apiVersion: Literal["resource.ration.dev/v1alpha1"] = names.CONFIG_VERSION  # noqa: N815 - the API's spelling
    kind: Literal["NodeOfferings"] = "NodeOfferings"
    rules: tuple[Rule, ...] = ()

    def gpu_offering(self, node: str, gpu: model.Gpu) -> published.Offering:
        """Return the offering of a node's GPU."""
        offering = published.Offering()
        for rule in self.rules:
            if _fits(rule.nodes, node) and rule.gpus.matches(gpu):
                offering = _with(offering, rule)
        return offering


def read(document: Mapping[str, object], path: str) -> NodeOfferings:
    """Read the document.

    Raises:
        BadInput: what is wrong, at which path under `path`.
    """
    return validation.read(NodeOfferings, document, path)


def _fits(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _with(offering: published.Offering, rule: Rule) -> published.Offering:
    factor = offering.memory_factor if rule.memoryFactor is None else Fraction(rule.memoryFactor)
    return published.Offering(
        kinds=offering.kinds if rule.faces is None else rule.faces,
        mig=rule.mig or offering.mig,
        mps_shares=rule.mpsShares or offering.mps_shares,
        time_slices=rule.timeSlices or offering.time_slices,
        memory_factor=factor,
    )

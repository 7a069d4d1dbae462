"""`WorkloadMix`: what is usually asked of the cluster, where claims do not tell yet (D6).

    apiVersion: resource.ration.dev/v1alpha1
    kind: WorkloadMix
    workloads:
    - {gpus: 8, cpu: 64, weight: 3}
    - {gpus: 1, products: [NVIDIA H100 80GB HBM3]}
    - {face: mps, percent: 25, weight: 2}

Each entry is a pod, and how often it comes compared with the others.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

import pydantic

from driver import names
from driver.api import validation
from driver.devices import faces

_MOST = 64
"""Entries, and GPUs of one pod: each entry is held against each node that is looked at."""
_Face = Literal[faces.Kind.WHOLE, faces.Kind.MIG, faces.Kind.MPS, faces.Kind.TIME_SLICING]
_CpuText = Annotated[str, pydantic.Field(pattern=r"^[0-9]{1,6}(\.[0-9]{1,3})?m?$")]


def _text(value: object) -> object:
    """YAML's `64` and `0.5` are quantities too."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number else value


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class Workload(_Strict):
    """A pod: so many whole GPUs, or `percent` of one as another face; CPUs; how often it comes.

    Of a share `percent` is what it has of memory or compute, whichever is more; of a MIG device it
    is the memory, at least. With `products` only these GPUs will do.
    """

    face: _Face = faces.Kind.WHOLE
    gpus: Annotated[int, pydantic.Field(ge=0, le=_MOST)] = 1
    percent: Annotated[int, pydantic.Field(ge=1, le=100)] | None = None
    cpu: Annotated[
        _CpuText, pydantic.BeforeValidator(_text, json_schema_input_type=float | _CpuText)
    ] = "0"
    products: tuple[Annotated[str, pydantic.Field(min_length=1)], ...] = ()
    weight: Annotated[float, pydantic.Field(gt=0, le=1_000_000)] = 1.0

    @pydantic.model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.face is faces.Kind.WHOLE and self.percent is not None:
            raise ValueError("percent is of another face than whole; expected gpus, or face too")
        if self.face is not faces.Kind.WHOLE and self.gpus != 1:
            raise ValueError(f"gpus is of whole GPUs; expected percent of one, for {self.face}")
        if self.face is not faces.Kind.WHOLE and self.percent is None:
            raise ValueError(f"face {self.face} has no size; expected percent of a GPU")
        if self.products and not self.gpus:
            raise ValueError("products are named and no GPU is asked; expected gpus, or none")
        return self


class WorkloadMix(_Strict):
    """The document."""

    apiVersion: Literal["resource.ration.dev/v1alpha1"] = names.CONFIG_VERSION  # noqa: N815 - the API's spelling
    kind: Literal["WorkloadMix"] = "WorkloadMix"
    workloads: Annotated[tuple[Workload, ...], pydantic.Field(min_length=1, max_length=_MOST)]


def read(document: Mapping[str, object], path: str) -> WorkloadMix:
    """Read the document.

    Raises:
        BadInput: what is wrong, at which path under `path`.
    """
    return validation.read(WorkloadMix, document, path)

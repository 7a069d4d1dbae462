"""NVIDIA's `resource.nvidia.com/v1beta1`, read into our own models (D13).

What NVIDIA's driver takes and ignores (a body of the other strategy) is refused here: it would not
do what its writer meant.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import pydantic

from driver.api import v1alpha1

VERSION = "resource.nvidia.com/v1beta1"


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True)


class _TimeSlicing(_Strict):
    interval: v1alpha1.Interval = "Default"


class _Mps(_Strict):
    defaultActiveThreadPercentage: Annotated[int, pydantic.Field(ge=0, le=100)] | None = None  # noqa: N815 - NVIDIA's spelling
    defaultPinnedDeviceMemoryLimit: v1alpha1.Amount | None = None  # noqa: N815 - as above
    defaultPerDevicePinnedMemoryLimit: v1alpha1.Limits = pydantic.Field(  # noqa: N815 - as above
        default_factory=dict
    )
    multiUser: bool | None = None  # noqa: N815 - as above


class _Sharing(_Strict):
    strategy: Literal["TimeSlicing", "MPS"]
    timeSlicingConfig: _TimeSlicing | None = None  # noqa: N815 - as above
    mpsConfig: _Mps | None = None  # noqa: N815 - as above

    @pydantic.model_validator(mode="after")
    def _one_body(self) -> "_Sharing":
        other = self.mpsConfig if self.strategy == "TimeSlicing" else self.timeSlicingConfig
        if other is not None:
            raise ValueError(f"strategy is {self.strategy}, and there is a body of the other one")
        return self


class GpuConfig(_Strict):
    """A whole GPU."""

    apiVersion: Literal["resource.nvidia.com/v1beta1"]  # noqa: N815 - as above
    kind: Literal["GpuConfig"]
    sharing: _Sharing | None = None

    def ours(self) -> v1alpha1.GpuConfig:
        """The same in our words."""
        return v1alpha1.GpuConfig(sharing=_shared(self.sharing))


class MigDeviceConfig(_Strict):
    """A MIG device; time-slicing says nothing there that would not be so anyway."""

    apiVersion: Literal["resource.nvidia.com/v1beta1"]  # noqa: N815 - as above
    kind: Literal["MigDeviceConfig"]
    sharing: _Sharing | None = None

    def ours(self) -> v1alpha1.MigDeviceConfig:
        """The same in our words."""
        result = _shared(self.sharing)
        return v1alpha1.MigDeviceConfig(
            sharing=result if isinstance(result, v1alpha1.MpsSharing) else None
        )


KINDS: Mapping[str, type[GpuConfig] | type[MigDeviceConfig]] = {
    "GpuConfig": GpuConfig,
    "MigDeviceConfig": MigDeviceConfig,
}


def _shared(sharing: _Sharing | None) -> v1alpha1.Sharing | None:
    if sharing is None:
        return None
    if sharing.strategy == "TimeSlicing":
        body = sharing.timeSlicingConfig or _TimeSlicing()
        slices = v1alpha1.TimeSlicing(interval=body.interval)
        return v1alpha1.TimeSlicingSharing(timeSlicing=slices)
    limits = sharing.mpsConfig or _Mps()
    return v1alpha1.MpsSharing(
        mps=v1alpha1.Mps(
            # 0 is NVIDIA's way to say nothing: an MPS server takes it for all.
            activeThreadPercentage=limits.defaultActiveThreadPercentage or None,
            pinnedMemory=limits.defaultPinnedDeviceMemoryLimit,
            pinnedMemoryPerDevice=limits.defaultPerDevicePinnedMemoryLimit,
            multiUser=limits.multiUser,
        )
    )

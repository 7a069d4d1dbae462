"""Values of the DeviceClasses: what claims may ask for."""

from typing import Annotated

import pydantic

from driver.api import v1alpha1
from hack.chart import parts

EXTENDED = r"^$|^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
PROFILE = r"^\d+(c\.\d+)?g\.\d+gb([+-](me|gfx)(\.all)?)?$"


class DeviceClass(parts.Part):
    """A DeviceClass."""

    enabled: bool = pydantic.Field(default=True, description="Create it.")
    name: parts.NameOrNone = pydantic.Field(
        default="", description="Name of the class. Default: derived from the driver's name."
    )
    extended_resource_name: Annotated[str, pydantic.Field(pattern=EXTENDED)] = pydantic.Field(
        default="",
        description="Extended resource that stands for the class, such as nvidia.com/gpu. The "
        "webhook converts pods that request it (admission.convert); else kube-scheduler makes "
        "their claims, and allocates them on nodes that it allocates.",
    )


class MigProfile(parts.Part):
    """The DeviceClass of one MIG profile."""

    profile: Annotated[str, pydantic.Field(pattern=PROFILE)] = pydantic.Field(
        description="MIG profile in NVIDIA's notation, such as 1g.10gb."
    )
    name: parts.NameOrNone = pydantic.Field(
        default="",
        description="Name of the class. Default: gpu-mig-1g.10gb.ration.dev, by profile.",
    )
    extended_resource_name: Annotated[str, pydantic.Field(pattern=EXTENDED)] = pydantic.Field(
        default="", description="Extended resource, such as nvidia.com/mig-1g.10gb."
    )


class MigClass(DeviceClass):
    """Parts of a GPU: any MIG profile, selected by the claim's `profile`."""

    profiles: list[MigProfile] = pydantic.Field(
        default=[], description="MIG profiles that get a DeviceClass each."
    )


class GpuClass(DeviceClass):
    """Whole GPUs; named as the driver."""


class TimeSlicingClass(DeviceClass):
    """Shares of GPUs whose processes take turns; gpu-timeslice.ration.dev."""


class MpsClass(DeviceClass):
    """Shares of GPUs under MPS; gpu-mps.ration.dev."""


class SliceClass(DeviceClass):
    """A part of a GPU of any kind, by what is needed of it; gpu-slice.ration.dev."""

    isolation: v1alpha1.Isolation = pydantic.Field(
        default="limits",
        description="Default isolation of claims: hardware allows MIG devices, limits MPS shares "
        "too, none any share.",
    )


class DeviceClasses(parts.Part):
    """What claims may ask for, one DeviceClass a strategy."""

    gpu: GpuClass = pydantic.Field(default=GpuClass(), description=parts.first_line(GpuClass))
    time_slicing: TimeSlicingClass = pydantic.Field(
        default=TimeSlicingClass(), description=parts.first_line(TimeSlicingClass)
    )
    mps: MpsClass = pydantic.Field(default=MpsClass(), description=parts.first_line(MpsClass))
    mig: MigClass = pydantic.Field(default=MigClass(), description=parts.first_line(MigClass))
    slice: SliceClass = pydantic.Field(
        default=SliceClass(), description=parts.first_line(SliceClass)
    )

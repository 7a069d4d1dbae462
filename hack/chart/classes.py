"""Values of the DeviceClasses: what claims may ask for."""

from typing import Annotated

import pydantic

from driver.api import v1alpha1
from hack.chart import parts

EXTENDED = r"^$|^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
PROFILE = r"^\d+(c\.\d+)?g\.\d+gb([+-](me|gfx)(\.all)?)?$"


class DeviceClass(parts.Part):
    """A DeviceClass."""

    enabled: bool = pydantic.Field(default=True, description="Install it.")
    name: parts.NameOrNone = pydantic.Field(
        default="", description="Its name; empty: by the driver's name."
    )
    extended_resource_name: Annotated[str, pydantic.Field(pattern=EXTENDED)] = pydantic.Field(
        default="",
        description="Extended resource that kube-scheduler turns into claims of it, such as "
        "nvidia.com/gpu; these get GPUs of nodes that kube-scheduler allocates only.",
    )


class MigProfile(parts.Part):
    """The DeviceClass of one MIG profile."""

    profile: Annotated[str, pydantic.Field(pattern=PROFILE)] = pydantic.Field(
        description="The profile, as NVIDIA spells it: 1g.10gb."
    )
    name: parts.NameOrNone = pydantic.Field(
        default="", description="Its name; empty: gpu-mig-1g.10gb.ration.dev."
    )
    extended_resource_name: Annotated[str, pydantic.Field(pattern=EXTENDED)] = pydantic.Field(
        default="", description="As of the other classes: nvidia.com/mig-1g.10gb."
    )


class MigClass(DeviceClass):
    """Parts of a GPU: any MIG profile, selected by the claim's `profile`."""

    profiles: list[MigProfile] = pydantic.Field(
        default=[], description="Profiles with a DeviceClass of their own."
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
        description="Of claims that do not say: hardware gives MIG devices, limits MPS shares "
        "too, none all there is.",
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

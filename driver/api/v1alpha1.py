"""`resource.ration.dev/v1alpha1`: the opaque configuration a claim or a class may carry (D13).

Models are strict: an unknown field, a wrong type or a wrong kind is refused with its place.
NVIDIA's `resource.nvidia.com/v1beta1` is read into the same models (`api.nvidia`). Amounts of
memory are quantities, as the API writes them: `20Gi`.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import pydantic

from driver import names

Interval = Literal["Default", "Short", "Medium", "Long"]
"""A GPU's time slice, as `nvidia-smi compute-policy` names it."""
Isolation = Literal["hardware", "limits", "none"]
"""What keeps a part of a GPU apart from the others, at least."""
Amount = Annotated[
    str, pydantic.Field(pattern=r"^[0-9]{1,18}(\.[0-9]{1,9})?(k|M|G|T|Ki|Mi|Gi|Ti)?$")
]
Percent = Annotated[int, pydantic.Field(ge=1, le=100)]
DeviceKey = Annotated[
    str, pydantic.Field(pattern=r"^(0|[1-9][0-9]?|(GPU|MIG)-[A-Za-z0-9-]{1,60})$")
]
"""A device of the claim: its UUID, or its place among the claim's UUIDs, sorted."""
Limits = Mapping[DeviceKey, Amount]
MAX_CONNECTIONS = 32
"""Of CUDA_DEVICE_MAX_CONNECTIONS (CUDA programming guide)."""


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True)


class TimeSlicing(_Strict):
    """Length of a time slice. One setting per GPU: its claims must agree."""

    interval: Interval = "Default"


class Mps(_Strict):
    """Settings of MPS clients.

    On shared faces the claim's capacity decides over memory and compute: `activeThreadPercentage`,
    `pinnedMemory` (of each device, at least 1Mi) and `pinnedMemoryPerDevice`, which goes before it,
    are for whole GPUs and MIG devices, and are refused there. `multiUser`, where it is not said, is
    as the GPU's server runs already, else true where driver and GPU have it.
    """

    activeThreadPercentage: Percent | None = None  # noqa: N815 - the API's spelling
    pinnedMemory: Amount | None = None  # noqa: N815 - as above
    pinnedMemoryPerDevice: Limits = pydantic.Field(default_factory=dict)  # noqa: N815 - as above
    priority: Literal["Normal", "BelowNormal"] = "Normal"
    maxConnections: Annotated[int, pydantic.Field(ge=1, le=MAX_CONNECTIONS)] | None = None  # noqa: N815 - as above
    multiUser: bool | None = None  # noqa: N815 - as above


class TimeSlicingSharing(_Strict):
    """Processes take turns."""

    strategy: Literal["TimeSlicing"] = "TimeSlicing"
    timeSlicing: TimeSlicing = TimeSlicing()  # noqa: N815 - as above


class MpsSharing(_Strict):
    """Processes run side by side under one MPS server."""

    strategy: Literal["MPS"] = "MPS"
    mps: Mps = Mps()


Sharing = TimeSlicingSharing | MpsSharing


class GpuConfig(_Strict):
    """Setup of a GPU for its claim. Empty: unchanged.

    `crossNamespace` allows that claims of several namespaces share the GPU; it is for DeviceClasses
    only (D18).
    """

    apiVersion: Literal["resource.ration.dev/v1alpha1"] = names.CONFIG_VERSION  # noqa: N815 - as above
    kind: Literal["GpuConfig"] = "GpuConfig"
    sharing: Annotated[Sharing, pydantic.Field(discriminator="strategy")] | None = None
    crossNamespace: bool = False  # noqa: N815 - as above


class MigDeviceConfig(_Strict):
    """Setup of a MIG device for its claim. Empty: unchanged."""

    apiVersion: Literal["resource.ration.dev/v1alpha1"] = names.CONFIG_VERSION  # noqa: N815 - as above
    kind: Literal["MigDeviceConfig"] = "MigDeviceConfig"
    sharing: MpsSharing | None = None


class SliceConfig(_Strict):
    """Required isolation of a part of a GPU, for requests that accept any kind of part.

    `hardware`: a MIG device. `limits`: a MIG device, or a share whose memory and compute MPS limits
    in each process. `none`: a time-sliced share as well. It selects the part; GpuConfig and
    MigDeviceConfig set it up.
    """

    apiVersion: Literal["resource.ration.dev/v1alpha1"] = names.CONFIG_VERSION  # noqa: N815 - as above
    kind: Literal["SliceConfig"] = "SliceConfig"
    isolation: Isolation = "limits"


Config = GpuConfig | MigDeviceConfig
"""What sets a device up."""
Document = Config | SliceConfig
"""Every kind of this version."""

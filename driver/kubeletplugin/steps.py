"""What a plan is made of. Pure: values in, values out.

A step changes hardware and knows its inverse, addressed by what was planned and never by what was
revealed, so that it can be undone after a crash (D8). A device is what the kubelet is told and
what its containers get.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from driver import ids

Arguments = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Step:
    """One change of one GPU.

    `act` and `undo` name entries of the executor's table; an act, done again, ends in the same
    state, and an undo succeeds where there is nothing left to undo.
    """

    act: str
    undo: str
    gpu: ids.GpuUuid
    arguments: Arguments = field(default_factory=dict)

    def inverse(self) -> "Step":
        """The step that takes this one back."""
        return Step(self.undo, self.act, self.gpu, self.arguments)


@dataclass(frozen=True, slots=True)
class Edits:
    """What a device adds to its containers, in terms of hardware: numbers are looked up late."""

    gpus: tuple[ids.GpuUuid, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedDevice:
    """One allocated device of a claim: `request` is a base name, `cdi_id` the qualified name."""

    request: str
    pool: str
    device: ids.DeviceName
    gpu: ids.GpuUuid
    cdi_id: str
    edits: Edits
    admin_access: bool = False
    share_id: str = ""

    @property
    def cdi_name(self) -> str:
        """The device's name in its CDI spec."""
        return self.cdi_id.partition("=")[2]


@dataclass(frozen=True, slots=True)
class Grant:
    """A result of our driver in our pool, with the GPU it stands for."""

    request: str
    pool: str
    device: ids.DeviceName
    gpu: ids.GpuUuid
    admin_access: bool = False
    share_id: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What one grant comes to."""

    device: PlannedDevice
    steps: tuple[Step, ...] = ()

"""Parses the node, or the GPU of a node, that a user names. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from driver import errors, ids, names
from driver.devices import faces
from driver.resources.dra import slices

_EXPECTED = "NODE, or NODE/GPU with the GPU's name, UUID or PCI address"


@dataclass(frozen=True, slots=True)
class Target:
    """A node, or with `gpu` one GPU of it: the name of its whole face once it is found."""

    node: ids.NodeName
    gpu: str = ""

    def __str__(self) -> str:
        return f"{self.node}/{self.gpu}" if self.gpu else self.node


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as it is published: every name that it goes by, and its devices."""

    name: ids.DeviceName
    known_as: frozenset[str]
    devices: frozenset[ids.DeviceName]


def parse(text: str) -> Target:
    """`gpu-1`, `gpu-1/gpu-0000-18-00-0`, `gpu-1/GPU-5f0c...`, `gpu-1/0000:18:00.0`.

    Raises:
        BadInput: it is none of these.
    """
    node, slash, gpu = text.partition("/")
    if not node or "/" in gpu or (slash and not gpu):
        raise errors.BadInput("NODE[/GPU]", f"is {text!r}", _EXPECTED)
    return Target(ids.NodeName(node), gpu)


def list_gpus(resource_slices: Iterable[slices.Slice]) -> tuple[Gpu, ...]:
    """The GPUs that the slices of a node are of, by name."""
    devices: dict[ids.DeviceName, list[slices.Device]] = {}
    for member in resource_slices:
        for device in member.devices:
            name = faces.gpu_name(device.name)
            if name is not None:
                devices.setdefault(name, []).append(device)
    return tuple(
        Gpu(
            name,
            frozenset({name, *(alias for member in members for alias in _aliases(member))}),
            frozenset(member.name for member in members),
        )
        for name, members in sorted(devices.items())
    )


def find_gpu(target: Target, gpus: Iterable[Gpu]) -> Gpu:
    """The GPU that a target names. Raises BadInput where the node publishes none such."""
    names_known = tuple(gpus)
    desired = target.gpu.lower()
    for gpu in names_known:
        if desired in {alias.lower() for alias in gpu.known_as}:
            return gpu
    listed = ", ".join(gpu.name for gpu in names_known) or "a node that publishes GPUs"
    raise errors.BadInput(str(target), f"node {target.node} publishes no such GPU", listed)


def _aliases(device: slices.Device) -> Iterable[str]:
    """Its UUID and its PCI address; of a MIG device those of its GPU."""
    kind = device.attributes.get(names.ATTR_TYPE)
    uuid = names.ATTR_PARENT_UUID if kind == names.TYPE_MIG else names.ATTR_UUID
    for key in (uuid, names.ATTR_PCI_BUS_ID):
        value = device.attributes.get(key)
        if isinstance(value, str):
            yield value

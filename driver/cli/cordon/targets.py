"""Parses the node, or the GPU of a node, that a user names, and finds its devices. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from driver import errors, ids, names
from driver.devices import faces
from driver.resources.dra import claims, slices
from driver.scheduling.allocator.capacity import vocabulary

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


@dataclass(frozen=True, slots=True)
class TargetDevices:
    """Devices of a target: those of one driver.

    `is_own`: the driver is Ration's kubelet plugin, which reads the Node's annotation. `gpu` is the
    target's GPU as it is published; None for a whole node, or for a GPU that is gone. `pools` are
    the driver's pools of the node.
    """

    target: Target
    driver: str
    is_own: bool = True
    gpu: Gpu | None = None
    pools: frozenset[str] = frozenset()

    @property
    def known_as(self) -> frozenset[str]:
        """Every name of the GPU; none for a whole node."""
        return self.gpu.known_as if self.gpu else frozenset({self.target.gpu} - {""})

    def includes(self, device: claims.DeviceId) -> bool:
        """Return whether an allocated device is one of them."""
        if device.driver != self.driver or device.pool not in {*self.pools, self.target.node}:
            return False
        if self.is_own:
            return self.target.gpu in {"", faces.gpu_name(device.device)}
        return self.gpu is None or device.device in self.gpu.devices


def choose_driver(target: Target, published: Iterable[slices.Slice], named: str) -> str:
    """Return the driver that a user named, or that whose GPUs the node publishes.

    Raises BadInput where several drivers publish GPUs there.
    """
    by_driver = _by_driver(published)
    own = [driver for driver, members in sorted(by_driver.items()) if is_own(driver, members)]
    others = [driver for driver in sorted(by_driver) if vocabulary.is_described(driver)]
    if named or own or not others:
        return named or next(iter(own), names.DRIVER)
    if len(others) > 1:
        raise errors.BadInput(
            str(target), f"{' and '.join(others)} publish GPUs of this node", "--driver-name too"
        )
    return others[0]


def is_own(driver: str, published: Iterable[slices.Slice]) -> bool:
    """Return whether a driver is Ration's kubelet plugin, under whatever name it is installed."""
    return driver == names.DRIVER or any(
        names.ATTR_ALLOCATOR in device.attributes
        for resource_slice in published
        if resource_slice.driver == driver
        for device in resource_slice.devices[:1]
    )


def find_devices(
    target: Target, driver: str, published: Iterable[slices.Slice], marked: frozenset[str]
) -> TargetDevices:
    """Return the devices of a target; `marked` are the GPUs of the node that are cordoned.

    Raises BadInput where the node publishes no such GPU, and none of that name is marked.
    """
    members = tuple(entry for entry in published if entry.driver == driver)
    own = is_own(driver, members)
    pools = frozenset(entry.pool for entry in members)
    if not target.gpu:
        return TargetDevices(target, driver, own, None, pools)
    gpus = list_gpus(members) if own else _list_other_gpus(driver, members)
    if target.gpu in marked and not any(target.gpu in gpu.known_as for gpu in gpus):
        return TargetDevices(target, driver, own, None, pools)  # it is gone, its mark is not
    gpu = find_gpu(target, gpus)
    holding = (
        entry.pool
        for entry in members
        if any(device.name in gpu.devices for device in entry.devices)
    )
    return TargetDevices(Target(target.node, gpu.name), driver, own, gpu, frozenset(holding))


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


def _list_other_gpus(driver: str, members: Iterable[slices.Slice]) -> tuple[Gpu, ...]:
    """Return the GPUs of another driver, each named by its shortest device name.

    A device of a driver without a vocabulary stands for itself.
    """
    devices: dict[str, list[slices.Device]] = {}
    for member in members:
        for device in member.devices:
            devices.setdefault(vocabulary.gpu_key(driver, device), []).append(device)
    return tuple(
        Gpu(
            min((device.name for device in group), key=lambda name: (len(name), name)),
            frozenset({key, *(device.name for device in group), *map(str, _addresses(group))}),
            frozenset(device.name for device in group),
        )
        for key, group in sorted(devices.items())
    )


def _addresses(group: Iterable[slices.Device]) -> Iterable[object]:
    for device in group:
        yield device.attributes.get(names.ATTR_PCI_BUS_ID, device.name)


def _by_driver(published: Iterable[slices.Slice]) -> dict[str, list[slices.Slice]]:
    result: dict[str, list[slices.Slice]] = {}
    for entry in published:
        result.setdefault(entry.driver, []).append(entry)
    return result


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

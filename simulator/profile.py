"""What a machine is made of: data in `profiles/*.yaml`, refused when no such machine can exist."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import yaml

from simulator import codes, geometry

PROFILES = Path(__file__).parent / "profiles"
MAX_MINOR = 253
"""/dev/nvidia254 and 255 are nvidia-modeset and nvidiactl."""

_BRIDGED = 2
_CAPABILITIES = {
    codes.Architecture.TURING: {"7.5"},
    codes.Architecture.AMPERE: {"8.0", "8.6", "8.7"},
    codes.Architecture.ADA: {"8.9"},
    codes.Architecture.HOPPER: {"9.0"},
    codes.Architecture.BLACKWELL: {"10.0", "10.3", "12.0", "12.1"},
}
OLDEST_DRIVER = {
    codes.Architecture.TURING: 410,
    codes.Architecture.AMPERE: 450,
    codes.Architecture.ADA: 520,
    codes.Architecture.HOPPER: 515,
    codes.Architecture.BLACKWELL: 570,
}
_NVLINK = {
    codes.Architecture.AMPERE: 3,
    codes.Architecture.HOPPER: 4,
    codes.Architecture.BLACKWELL: 5,
}
_MIG_ARCHITECTURES = {
    codes.Architecture.AMPERE,
    codes.Architecture.HOPPER,
    codes.Architecture.BLACKWELL,
}

PciAddress = Annotated[
    str, pydantic.Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]$")
]
HostBridge = Annotated[str, pydantic.Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}$")]


def _by_name(enum: type[IntEnum]) -> pydantic.BeforeValidator:
    def parse(value: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever stood in the file
        if isinstance(value, str) and value not in enum.__members__:
            raise ValueError(f"expected one of {', '.join(enum.__members__)}")
        return enum[value] if isinstance(value, str) else value

    return pydantic.BeforeValidator(parse)


class ImpossibleMachineError(ValueError):
    """A machine that cannot exist; `reasons` says why, one sentence each."""

    def __init__(self, machine: str, reasons: tuple[str, ...]) -> None:
        super().__init__(f"impossible machine {machine}: {'; '.join(reasons)}")
        self.machine = machine
        self.reasons = reasons


class UnknownMachineError(LookupError):
    """A name that is neither a machine of `profiles/` nor a file."""

    def __init__(self, machine: str) -> None:
        known = ", ".join(names())
        super().__init__(f"unknown machine {machine!r}: expected a YAML file or one of {known}")
        self.machine = machine


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


class Driver(_Strict):
    """The installed driver: its version and the newest CUDA it speaks."""

    version: str = pydantic.Field(pattern=r"^\d{3}\.\d{2,3}(\.\d{2})?$")
    cuda: str = pydantic.Field(pattern=r"^\d{2}\.\d$")


class Memory(_Strict):
    """Framebuffer in MiB; `reserved` is the driver's own part of `total`."""

    total: pydantic.PositiveInt
    reserved: pydantic.NonNegativeInt


class PciIds(_Strict):
    """Device and subsystem, each `device << 16 | vendor`."""

    device: int = pydantic.Field(gt=0, le=0xFFFFFFFF)
    subsystem: int = pydantic.Field(gt=0, le=0xFFFFFFFF)


class Power(_Strict):
    """Watts: limits, the default limit, and the draw of an idle board."""

    min: pydantic.PositiveInt
    default: pydantic.PositiveInt
    max: pydantic.PositiveInt
    idle: pydantic.PositiveInt


class NvLink(_Strict):
    """Generation and number of links: all to NVSwitches, or all to the other GPU of a bridge."""

    generation: int = pydantic.Field(ge=1, le=5)
    links: int = pydantic.Field(ge=1, le=18)


class Clocks(_Strict):
    """The most the clocks reach, in MHz; SM and graphics are one."""

    graphics: pydantic.PositiveInt
    memory: pydantic.PositiveInt


class Pcie(_Strict):
    """The link to the host."""

    generation: int = pydantic.Field(ge=3, le=6)
    width: Literal[8, 16] = 16


class Fabric(_Strict):
    """What the fabric manager says of every GPU; an all-zero cluster is no multi-node NVLink."""

    cluster: str = pydantic.Field(
        default="00000000-0000-0000-0000-000000000000",
        pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    )
    clique: int = pydantic.Field(ge=0, le=0xFFFFFFFF, default=0)

    @property
    def spans_nodes(self) -> bool:
        """Whether there is a multi-node NVLink domain."""
        return self.cluster.strip("0-") != ""


class MigProfile(_Strict):
    """One GPU-instance profile: what an instance of it has. `me` media engines come with `ofa`."""

    name: str = pydantic.Field(pattern=r"^[1-8]g\.[1-9]\d*gb(\+me|\+me\.all|\+gfx|-me)?$")
    memory_mib: pydantic.PositiveInt
    sm: pydantic.PositiveInt
    copy_engines: pydantic.PositiveInt
    decoders: pydantic.NonNegativeInt = 0
    encoders: pydantic.NonNegativeInt = 0
    jpeg: pydantic.NonNegativeInt = 0
    ofa: pydantic.NonNegativeInt = 0


class Mig(_Strict):
    """Memory slices, and a profile for names of `geometry.SHAPES` (NVML's, without a prefix)."""

    memory_slices: Literal[4, 8, 12]
    profiles: dict[str, MigProfile] = pydantic.Field(min_length=1)


class Product(_Strict):
    """One GPU model."""

    name: str = pydantic.Field(min_length=1, max_length=95)
    brand: Annotated[codes.Brand, _by_name(codes.Brand)]
    architecture: Annotated[codes.Architecture, _by_name(codes.Architecture)]
    compute_capability: str = pydantic.Field(pattern=r"^\d+\.\d$")
    memory_mib: Memory
    pci_ids: PciIds
    power_w: Power
    idle_celsius: pydantic.PositiveInt
    ecc: bool
    remap_banks: pydantic.NonNegativeInt = 0
    bar1_mib: pydantic.PositiveInt
    clocks_mhz: Clocks
    pcie: Pcie
    addressing: Annotated[codes.AddressingMode, _by_name(codes.AddressingMode)]
    mig: Mig | None = None
    nvlink: NvLink | None = None


class Gpu(_Strict):
    """One GPU in its slot; `host_bridge` is the PCIe root it hangs under, `numa` -1 is none.

    `module` is absent on a PCIe card. GPUs of one `board` share a serial number. NVLinks join the
    two of one `bridge`. An `excluded` one is on the bus, and the driver leaves it alone.
    `halves_swapped` is for MIG: see `geometry.gpu_instance_id`.
    """

    product: str
    pci: PciAddress
    host_bridge: HostBridge
    minor: int = pydantic.Field(ge=0, le=MAX_MINOR)
    module: pydantic.NonNegativeInt | None = None
    numa: int = pydantic.Field(ge=-1)
    halves_swapped: bool = False
    board: str | None = None
    bridge: str | None = None
    excluded: bool = False


class Platform(_Strict):
    """Where the machine stands in its rack: chassis, slot and tray, and which host of the tray."""

    chassis: str = pydantic.Field(min_length=1, max_length=13)
    slot: int = pydantic.Field(ge=0, le=255)
    tray: int = pydantic.Field(ge=0, le=255)
    host: int = pydantic.Field(ge=0, le=255)
    peer: int = pydantic.Field(ge=0, le=255, default=1)


class NvSwitches(_Strict):
    """The switches every NVLink of the machine ends at; one product, several PCI addresses."""

    pci_device_id: int = pydantic.Field(gt=0, le=0xFFFFFFFF)
    addresses: list[PciAddress] = pydantic.Field(min_length=1)


class Profile(_Strict):
    """A whole machine."""

    description: str
    driver: Driver
    products: dict[str, Product]
    virtualization: Annotated[codes.Virtualization, _by_name(codes.Virtualization)] = (
        codes.Virtualization.NONE
    )
    nvswitches: NvSwitches | None = None
    fabric: Fabric | None = None
    platform: Platform | None = None
    gpus: list[Gpu] = pydantic.Field(min_length=1)

    @property
    def oldest_driver(self) -> int:
        """The least driver major that knows every GPU of the machine."""
        return max(OLDEST_DRIVER[p.architecture] for p in self.products.values())


def names() -> tuple[str, ...]:
    """The machines described in `profiles/`."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.yaml")))


def text_of(machine: str) -> str:
    """The YAML of a named machine or of the file at that path."""
    path = Path(machine) if machine.endswith((".yaml", ".yml")) else PROFILES / f"{machine}.yaml"
    plain_name = path.parent != PROFILES or re.fullmatch(r"[a-z0-9][a-z0-9-]*", machine)
    if not plain_name or not path.is_file():
        raise UnknownMachineError(machine)
    return path.read_text()


def load(machine: str) -> Profile:
    """The machine of that name (or file); raises UnknownMachineError or ImpossibleMachineError."""
    return parse(machine, text_of(machine))


def parse(machine: str, text: str) -> Profile:
    """A profile from YAML; `machine` names it in the error."""
    try:
        profile = Profile.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as e:
        raise ImpossibleMachineError(machine, (f"not YAML: {e}",)) from e
    except pydantic.ValidationError as e:
        raise ImpossibleMachineError(machine, tuple(_sentences(e))) from e
    if reasons := tuple(_impossibilities(profile)):
        raise ImpossibleMachineError(machine, reasons)
    return profile


def _sentences(error: pydantic.ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        where = ".".join(str(part) for part in problem["loc"]) or "the document"
        yield f"{where}: {problem['msg']} (found {problem['input']!r})"


def _impossibilities(profile: Profile) -> Iterator[str]:
    addresses = [gpu.pci for gpu in profile.gpus]
    addresses += profile.nvswitches.addresses if profile.nvswitches else []
    yield from (f"PCI address {a} is taken twice" for a in _repeated(addresses))
    yield from (f"minor {m} is taken twice" for m in _repeated(g.minor for g in profile.gpus))
    modules = [gpu.module for gpu in profile.gpus if gpu.module is not None]
    yield from (f"module {m} is taken twice" for m in _repeated(modules))
    yield from _fabric_impossibilities(profile)
    if int(profile.driver.version[:3]) < profile.oldest_driver:
        oldest = profile.oldest_driver
        yield f"driver {profile.driver.version} does not know its GPUs: it takes {oldest}"
    yield from _host_bridge_impossibilities(profile)
    yield from _nvlink_bridge_impossibilities(profile)
    for name, product in profile.products.items():
        yield from (f"product {name}: {reason}" for reason in _product_impossibilities(product))
    for gpu in profile.gpus:
        product_of = profile.products.get(gpu.product)
        if product_of is None:
            yield f"GPU {gpu.pci}: no product {gpu.product!r} is described"
        elif product_of.nvlink and not _has_switches(profile) and not gpu.bridge:
            yield f"GPU {gpu.pci}: NVLinks end at switches or a bridge, and the machine has none"


def _has_switches(profile: Profile) -> bool:
    """Its own, or those of the rack."""
    return bool(profile.nvswitches or (profile.fabric and profile.fabric.spans_nodes))


def _fabric_impossibilities(profile: Profile) -> Iterator[str]:
    if profile.virtualization is codes.Virtualization.VGPU and _has_switches(profile):
        yield "a vGPU guest has no NVSwitches"
    for name, product in profile.products.items():
        linked = product.nvlink and product.architecture >= codes.Architecture.HOPPER
        if profile.fabric and not linked:
            yield f"product {name}: a fabric takes NVLink and Hopper or newer"
        if profile.platform and product.architecture < codes.Architecture.BLACKWELL:
            yield f"product {name}: it takes Blackwell or newer to tell its place in a rack"


def _host_bridge_impossibilities(profile: Profile) -> Iterator[str]:
    numa_of: dict[str, int] = {}
    for gpu in profile.gpus:
        if numa_of.setdefault(gpu.host_bridge, gpu.numa) != gpu.numa:
            yield f"host bridge {gpu.host_bridge} belongs to two NUMA nodes"
        if gpu.pci[:4] != gpu.host_bridge[:4] or gpu.pci[5:7] <= gpu.host_bridge[5:]:
            yield f"GPU {gpu.pci} cannot lie behind host bridge {gpu.host_bridge}"


def _nvlink_bridge_impossibilities(profile: Profile) -> Iterator[str]:
    joined = [gpu for gpu in profile.gpus if gpu.bridge]
    if joined and _has_switches(profile):
        yield "NVLinks end at switches or a bridge, and the machine has both"
    for bridge, count in Counter(gpu.bridge for gpu in joined).items():
        if count != _BRIDGED:
            yield f"bridge {bridge} joins {count} GPUs: it joins {_BRIDGED}"
    for gpu in joined:
        product = profile.products.get(gpu.product)
        if product is not None and product.nvlink is None:
            yield f"GPU {gpu.pci}: a bridge, and no NVLink"


def _product_impossibilities(product: Product) -> Iterator[str]:
    if product.compute_capability not in _CAPABILITIES[product.architecture]:
        arch = product.architecture.name
        yield f"compute capability {product.compute_capability} is not one of {arch}"
    if product.memory_mib.reserved >= product.memory_mib.total:
        yield "reserved memory leaves nothing of the total"
    remaps = product.architecture >= codes.Architecture.AMPERE
    if (product.remap_banks > 0) != (product.ecc and remaps):
        yield f"{product.remap_banks} banks to remap rows in: it takes ECC and Ampere or newer"
    if product.nvlink and product.nvlink.generation != _NVLINK.get(product.architecture):
        yield f"{product.architecture.name} does not have NVLink {product.nvlink.generation}"
    if product.bar1_mib & (product.bar1_mib - 1):
        yield f"a BAR1 of {product.bar1_mib} MiB is not a power of two"
    power = product.power_w
    if not power.min <= power.default <= power.max or power.idle > power.max:
        yield f"power limits do not nest: {power}"
    if product.mig and product.architecture not in _MIG_ARCHITECTURES:
        yield f"{product.architecture.name} has no MIG"
    if product.mig:
        yield from _mig_impossibilities(product.mig, product.memory_mib.total)


def _mig_impossibilities(mig: Mig, total_mib: int) -> Iterator[str]:
    shapes = geometry.SHAPES[mig.memory_slices]
    if "1_SLICE" not in mig.profiles:
        yield "MIG without the profile 1_SLICE"
    yield from (
        f"MIG name {n} is taken twice" for n in _repeated(p.name for p in mig.profiles.values())
    )
    for key, one in mig.profiles.items():
        shape = shapes.get(key)
        if shape is None:
            yield f"MIG profile {key}: expected one of {', '.join(shapes)}"
        elif not one.name.startswith(f"{shape.slices}g."):
            yield f"MIG profile {key}: {one.name} does not have {shape.slices} slices"
        elif one.memory_mib * mig.memory_slices > total_mib * shape.size:
            yield f"MIG profile {key}: {one.memory_mib} MiB do not fit into its memory slices"


def _repeated(values: Iterable[Hashable]) -> list[Hashable]:
    return [value for value, times in Counter(values).items() if times > 1]

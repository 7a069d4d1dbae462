"""One configuration of the NVIDIA device plugin, `version: v1`, with its types checked.

Unknown keys are let through here; `fates` names them. Values that the device plugin itself refuses
are refused with their place.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import pydantic
from pydantic import alias_generators

from driver import errors

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-"
SHARED_SUFFIX = ".shared"
_PREFIX = "nvidia.com/"
_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_REF = re.compile(rf"\d+|\d+:\d+|GPU-{_UUID}|MIG-{_UUID}|MIG-GPU-{_UUID}/\d+/\d+")
Devices = Literal["all"] | int | tuple[str, ...]
"""Every GPU, so many of them, or these: by index, `gpu:mig` index, or UUID."""


def resource_name(name: str) -> str:
    """With the prefix that may be left out."""
    return name if name.startswith(_PREFIX) else _PREFIX + name


def _devices(value: object) -> Devices:
    match value:
        case "all":
            return "all"
        case int() if not isinstance(value, bool) and value > 0:
            return value
        case list() if all(_is_ref(item) for item in value):
            return tuple(str(item) for item in value)
    raise ValueError('is not "all", a count above 0, or a list of indices and UUIDs')


def _is_ref(value: object) -> bool:
    return not isinstance(value, bool) and bool(_REF.fullmatch(str(value)))


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split(","))
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError("is neither a word nor a list of words")


class _Old(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(
        extra="ignore",
        strict=True,
        frozen=True,
        alias_generator=alias_generators.to_camel,
    )


class PluginFlags(_Old):
    """`flags.plugin`: how the device plugin hands devices to the container runtime."""

    pass_device_specs: bool | None = None
    device_list_strategy: Annotated[tuple[str, ...], pydantic.PlainValidator(_texts)] = ()
    device_id_strategy: Literal["uuid", "index"] | None = pydantic.Field(
        default=None, alias="deviceIDStrategy"
    )
    cdi_annotation_prefix: str | None = None
    nvidia_ctk_path: str | None = pydantic.Field(default=None, alias="nvidiaCTKPath")
    container_driver_root: str | None = None
    shared_devices_allocation_policy: Literal["distributed", "packed"] | None = None


class GfdFlags(_Old):
    """`flags.gfd`: GPU feature discovery, which reads the same file."""

    oneshot: bool | None = None
    no_timestamp: bool | None = None
    sleep_interval: str | int | None = None
    output_file: str | None = None
    machine_type_file: str | None = None


class Flags(_Old):
    """`flags`."""

    mig_strategy: Literal["none", "single", "mixed"] | None = None
    fail_on_init_error: bool | None = None
    mps_root: str | None = None
    nvidia_driver_root: str | None = None
    nvidia_dev_root: str | None = None
    gdrcopy_enabled: bool | None = None
    gds_enabled: bool | None = None
    mofed_enabled: bool | None = None
    use_node_feature_api: bool | None = pydantic.Field(default=None, alias="useNodeFeatureAPI")
    device_discovery_strategy: Literal["auto", "nvml", "tegra"] | None = None
    plugin: PluginFlags | None = None
    gfd: GfdFlags | None = None


class Pattern(_Old):
    """A name for GPUs whose product fits a pattern."""

    pattern: str
    name: str


class Patterns(_Old):
    """`resources`."""

    gpus: list[Pattern] | None = None
    mig: list[Pattern] | None = None


class Replicated(_Old):
    """A resource, and how often each of its devices is given out."""

    name: str
    rename: str | None = None
    devices: Annotated[Devices, pydantic.PlainValidator(_devices)] = "all"
    replicas: Annotated[int, pydantic.Field(ge=1)]

    @property
    def resource(self) -> str:
        """`nvidia.com/gpu`, written as `gpu` too."""
        return resource_name(self.name)


class Replicas(_Old):
    """`sharing.timeSlicing` or `sharing.mps`."""

    strategy: Literal[""] | None = None
    rename_by_default: bool | None = None
    fail_requests_greater_than_one: bool | None = None
    resources: Annotated[list[Replicated], pydantic.Field(min_length=1)]


class Sharing(_Old):
    """`sharing`."""

    time_slicing: Replicas | None = None
    mps: Replicas | None = None


class Imex(_Old):
    """`imex`."""

    channel_ids: list[Literal[0]] | None = pydantic.Field(
        default=None, alias="channelIDs", max_length=1
    )
    required: bool | None = None


class Config(_Old):
    """The file."""

    version: Literal["v1", ""] | None = None
    flags: Flags | None = None
    resources: Patterns | None = None
    sharing: Sharing | None = None
    imex: Imex | None = None

    @property
    def mig_strategy(self) -> str:
        """Strategy for MIG resources: none, single or mixed."""
        return (self.flags and self.flags.mig_strategy) or "none"

    @property
    def is_mixed(self) -> bool:
        """Return whether parts have resources of their own."""
        return self.mig_strategy == "mixed"

    @property
    def is_mps(self) -> bool:
        """The device plugin takes `sharing.mps` where both are."""
        return self.sharing is not None and self.sharing.mps is not None

    @property
    def replicas(self) -> Replicas | None:
        """The way of sharing that counts."""
        if self.sharing is None:
            return None
        return self.sharing.mps or self.sharing.time_slicing


def read(body: Mapping[str, object], location: str) -> Config:
    """Read one configuration.

    Raises:
        BadInput: what the device plugin would refuse too, at which path below `location`.
    """
    try:
        return Config.model_validate(body)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        path = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in first["loc"]).lstrip(
            "."
        )
        problem = first["msg"].removeprefix("Value error, ")
        raise errors.BadInput(f"{location}{path}", problem) from error

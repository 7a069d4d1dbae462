"""A CDI spec as data, checked as the runtime's loader checks it and then by our allow-list. Pure.

The loader's rules: CDI specification, pkg/cdi validate.go and version.go (node-layer 5.1). The
allow-list: NVIDIA's device nodes only, mounts from the driver root or of an MPS daemon only, and
variables of CUDA's MPS and of ours.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Literal

import pydantic
import pydantic_core

from driver import errors

CDI_CLASS = "claim"
_WORD = r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_KIND = rf"^{_WORD}/{_WORD}$"
_DEVICE = r"^[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?$"
_NODE = re.compile(r"^/dev/nvidia(?:\d{1,3}|ctl|-uvm|-uvm-tools|-modeset|-caps/nvidia-cap\d{1,7})$")
_GPU_NODE = re.compile(r"/dev/nvidia(\d{1,3})")
_PLACES = re.compile(
    r"^(?:/usr/lib/[a-z0-9_]+-linux-gnu/lib[A-Za-z0-9_+.-]+\.so(?:\.[0-9.]+)?"
    r"|/usr/bin/nvidia-[a-z0-9-]+|/run/nvidia-[a-z]+)$"
)
_SHARED_PLACES = frozenset({"/tmp/nvidia-mps", "/dev/shm"})  # noqa: S108 - in containers
_ENVIRONMENT = re.compile(
    r"NVIDIA_VISIBLE_DEVICES=void"
    r"|CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"
    r"|CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=\d{1,2}=\d{1,9}M(?:,\d{1,2}=\d{1,9}M)*"
    r"|CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=\d{1,3}"
    r"|CUDA_MPS_CLIENT_PRIORITY=[01]"
    r"|CUDA_DEVICE_MAX_CONNECTIONS=\d{1,2}"
    r"|RATION_GPU(?:_[0-9A-F]{1,8}){4}_(?:TS|MPS)=memory=\d{1,15},compute=\d{1,3}"
)
_NOT_PLAIN = frozenset({"", ".", ".."})
_MAX_MINOR = (1 << 20) - 1


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True)


class DeviceNode(_Strict):
    """`deviceNodes[]`: complete, so the runtime looks nothing up."""

    path: str
    hostPath: str | None = None  # noqa: N815 - CDI's spelling
    type: Literal["c"]
    major: Annotated[int, pydantic.Field(gt=0, le=4095)]
    minor: Annotated[int, pydantic.Field(ge=0, le=_MAX_MINOR)]
    permissions: Annotated[str, pydantic.Field(pattern=r"^[rwm]{1,3}$")]


class Mount(_Strict):
    """`mounts[]`."""

    hostPath: Annotated[str, pydantic.Field(min_length=1)]  # noqa: N815 - CDI's spelling
    containerPath: Annotated[str, pydantic.Field(min_length=1)]  # noqa: N815 - CDI's spelling
    options: Annotated[list[str], pydantic.Field(min_length=1)]


class ContainerEdits(_Strict):
    """`containerEdits`, as far as we use it: no hooks, no groups."""

    env: list[Annotated[str, pydantic.Field(pattern=r"^[^=]+=.*$")]] = []
    deviceNodes: list[DeviceNode] = []  # noqa: N815 - CDI's spelling
    mounts: list[Mount] = []

    @property
    def empty(self) -> bool:
        """Whether it edits nothing: the loader refuses such a device."""
        return not (self.env or self.deviceNodes or self.mounts)


class Device(_Strict):
    """`devices[]`."""

    name: Annotated[str, pydantic.Field(pattern=_DEVICE)]
    containerEdits: ContainerEdits  # noqa: N815 - CDI's spelling


class Spec(_Strict):
    """A whole spec."""

    cdiVersion: str  # noqa: N815 - CDI's spelling
    kind: Annotated[str, pydantic.Field(pattern=_KIND)]
    containerEdits: ContainerEdits  # noqa: N815 - CDI's spelling
    devices: Annotated[list[Device], pydantic.Field(min_length=1)]

    @property
    def all_edits(self) -> Iterator[ContainerEdits]:
        """The common edits, then each device's."""
        yield self.containerEdits
        yield from (device.containerEdits for device in self.devices)


def kind(driver_name: str) -> str:
    """`<driver name>/claim`. Raises BadInput for a driver name that CDI takes for no vendor."""
    made = f"{driver_name}/{CDI_CLASS}"
    if not re.fullmatch(_KIND, made):
        raise errors.BadInput("driver name", f"is {driver_name!r}", "a letter first, as CDI asks")
    return made


def parse(text: str, driver_root: str, shared_root: str = "") -> Spec:
    """Read a spec and check all of it; mounts and nodes may come from `driver_root` only.

    What clients of an MPS daemon share with it may come from `shared_root`, where one is given.

    Raises:
        BadInput: what is wrong, and where.
    """
    try:
        spec = Spec.model_validate_json(text)
    except pydantic.ValidationError as e:
        first = e.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "spec"
        raise errors.BadInput(f"CDI {where}", str(first["msg"])) from e
    shared = str(PurePosixPath(shared_root)) if shared_root else ""
    for where, problem, expected in _problems(spec, str(PurePosixPath(driver_root)), shared):
        raise errors.BadInput(f"CDI {where}", problem, expected)
    return spec


def minors(data: bytes) -> frozenset[int]:
    """The minors of the GPUs that a written spec gives to containers; none if it is torn."""
    try:
        spec = Spec.model_validate_json(data)
    except pydantic.ValidationError:
        return frozenset()
    nodes = (node for edits in spec.all_edits for node in edits.deviceNodes)
    found = (_GPU_NODE.fullmatch(node.path) for node in nodes)
    return frozenset(int(match[1]) for match in found if match)


def canonical(spec: Spec) -> bytes:
    """The bytes that are written: least version, sorted keys, no empty field."""
    whole = spec.model_dump(mode="json", exclude_none=True)
    whole["cdiVersion"] = least_version(spec)
    return pydantic_core.to_json(_sorted_without_empty(whole), indent=1) + b"\n"


def least_version(spec: Spec) -> str:
    """The oldest CDI version that has all that the spec uses: old runtimes refuse newer ones."""
    if "." in spec.kind.partition("/")[2]:
        return "0.6.0"
    digit_first = any(device.name[0].isdigit() for device in spec.devices)
    elsewhere = any(node.hostPath for edits in spec.all_edits for node in edits.deviceNodes)
    return "0.5.0" if digit_first or elsewhere else "0.3.0"


def _problems(spec: Spec, root: str, shared: str) -> Iterator[tuple[str, str, str]]:
    names = [device.name for device in spec.devices]
    if len(set(names)) != len(names):
        yield "devices", "has a name twice", "different names"
    for device in spec.devices:
        if device.containerEdits.empty:
            yield f"devices[{device.name}]", "edits nothing", "an edit"
    for edits in spec.all_edits:
        for variable in edits.env:
            if not _ENVIRONMENT.fullmatch(variable):
                yield "env", f"is {variable!r}", "a variable of MPS or of a share"
        for node in edits.deviceNodes:
            yield from _node_problems(node, root)
        for mount in edits.mounts:
            if mount.containerPath in _SHARED_PLACES:
                yield from _shared_problems(mount, shared)
            else:
                yield from _mount_problems(mount, root)


def _node_problems(node: DeviceNode, root: str) -> Iterator[tuple[str, str, str]]:
    if not _NODE.fullmatch(node.path):
        yield "deviceNodes.path", f"is {node.path!r}", "a device of NVIDIA's"
    host = node.hostPath or node.path
    if host != root.rstrip("/") + node.path:
        yield "deviceNodes.hostPath", f"is {host!r}", f"the same device under {root}"


def _mount_problems(mount: Mount, root: str) -> Iterator[tuple[str, str, str]]:
    if not _is_under(mount.hostPath, root):
        yield "mounts.hostPath", f"is {mount.hostPath!r}", f"a path under {root}"
    if not _PLACES.fullmatch(mount.containerPath):
        place = "a library, a program or a daemon's folder of NVIDIA's"
        yield "mounts.containerPath", f"is {mount.containerPath!r}", place
    missing = {"ro", "nosuid", "nodev"} - set(mount.options)
    if missing:
        yield "mounts.options", f"lacks {sorted(missing)}", "a mount that only gives to read"


def _shared_problems(mount: Mount, root: str) -> Iterator[tuple[str, str, str]]:
    if not root or not _is_under(mount.hostPath, root):
        yield (
            "mounts.hostPath",
            f"is {mount.hostPath!r}",
            f"a path under {root or 'no root at all'}",
        )
    missing = {"rw", "nosuid", "nodev"} - set(mount.options)
    if missing:
        yield "mounts.options", f"lacks {sorted(missing)}", "what a daemon's clients write to"


def _is_under(path: str, root: str) -> bool:
    """Whether a plain absolute path lies under the root; `..` and doubled slashes never do."""
    above = "/" if root == "/" else f"{root}/"
    return path.startswith(above) and _NOT_PLAIN.isdisjoint(path[1:].split("/"))


def _sorted_without_empty(value: object) -> object:
    if isinstance(value, dict):
        kept = {key: _sorted_without_empty(value[key]) for key in sorted(value)}
        return {key: inner for key, inner in kept.items() if inner not in ([], {})}
    if isinstance(value, list):
        return [_sorted_without_empty(inner) for inner in value]
    return value

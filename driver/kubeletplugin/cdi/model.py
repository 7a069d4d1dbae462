"""A CDI spec as data, checked by the runtime's rules and then by our allow-list. Pure.

The loader's rules: CDI specification, pkg/cdi validate.go and version.go. The allow-list is
`allow`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Literal

import pydantic
import pydantic_core

from driver import errors
from driver.kubeletplugin.cdi import allow, template

CDI_CLASS = "claim"
OLDEST = "0.3.0"
_WORD = r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_KIND = rf"^{_WORD}/{_WORD}$"
_DEVICE = r"^[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?$"
_GPU_NODE = re.compile(r"/dev/nvidia(\d{1,3})")
_MAX_MINOR = (1 << 20) - 1


class _Strict(pydantic.BaseModel):
    # Most values are of one claim alone, and pydantic would keep the last 16,384 of them.
    model_config = pydantic.ConfigDict(
        extra="forbid", strict=True, frozen=True, cache_strings="keys"
    )


class DeviceNode(_Strict):
    """`deviceNodes[]`: complete, so that the runtime looks nothing up."""

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


class Hook(_Strict):
    """`hooks[]`."""

    hookName: Literal["createContainer"]  # noqa: N815 - CDI's spelling
    path: Annotated[str, pydantic.Field(min_length=1)]
    args: Annotated[list[str], pydantic.Field(min_length=2)]
    env: list[str]


class ContainerEdits(_Strict):
    """`containerEdits`, restricted to the fields we use: no groups."""

    env: list[Annotated[str, pydantic.Field(pattern=r"^[^=]+=.*$")]] = []
    deviceNodes: list[DeviceNode] = []  # noqa: N815 - CDI's spelling
    mounts: list[Mount] = []
    hooks: list[Hook] = []

    @property
    def is_empty(self) -> bool:
        """Return whether it edits nothing: the loader refuses such a device."""
        return not (self.env or self.deviceNodes or self.mounts or self.hooks)


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
        """Yield the common edits, then each device's."""
        yield self.containerEdits
        yield from (device.containerEdits for device in self.devices)


def cdi_kind(driver_name: str) -> str:
    """Return `<driver name>/claim`. Raises BadInput if the driver name is no CDI vendor."""
    kind = f"{driver_name}/{CDI_CLASS}"
    if not re.fullmatch(_KIND, kind):
        raise errors.BadInput("driver name", f"is {driver_name!r}", "a letter first, as CDI asks")
    return kind


def parse(text: str, limits: allow.Limits) -> Spec:
    """Parse a spec and check all of it.

    Raises:
        BadInput: what is wrong, and where.
    """
    try:
        spec = Spec.model_validate_json(text)
    except pydantic.ValidationError as e:
        raise _bad_input(e) from e
    for location, problem, expected in _problems(spec, limits):
        raise errors.BadInput(f"CDI {location}", problem, expected)
    return spec


def claim_device(
    edits: ContainerEdits,
    name: str,
    mounts: Iterable[template.Mount],
    limits: allow.Limits,
    host_path: Callable[[str], str],
) -> Device:
    """Return a claim's device: checked edits with its name and its own mounts.

    These are checked, and get the host's own paths.

    Raises:
        BadInput: what is wrong, and where.
    """
    own = [
        {
            "hostPath": mount.host_path,
            "containerPath": mount.container_path,
            "options": list(mount.options),
        }
        for mount in mounts
    ]
    try:
        device = Device.model_validate({"name": name, "containerEdits": {"mounts": own}})
    except pydantic.ValidationError as e:
        raise _bad_input(e) from e
    for location, problem, expected in _edit_problems(device.containerEdits, limits):
        raise errors.BadInput(f"CDI {location}", problem, expected)
    every = [*edits.mounts, *_map_edits(device.containerEdits, host_path).mounts]
    return device.model_copy(update={"containerEdits": edits.model_copy(update={"mounts": every})})


def build_spec(kind: str, common: ContainerEdits, devices: list[Device]) -> Spec:
    """Return the spec of checked parts. Raises BadInput for a device's name that is there twice."""
    spec = Spec.model_construct(
        cdiVersion=OLDEST, kind=kind, containerEdits=common, devices=devices
    )
    for location, problem, expected in _name_problems(spec):
        raise errors.BadInput(f"CDI {location}", problem, expected)
    return spec


def map_host_paths(spec: Spec, host_path: Callable[[str], str]) -> Spec:
    """Return the spec with the host's own paths."""
    devices = [
        device.model_copy(update={"containerEdits": _map_edits(device.containerEdits, host_path)})
        for device in spec.devices
    ]
    common = _map_edits(spec.containerEdits, host_path)
    return spec.model_copy(update={"containerEdits": common, "devices": devices})


def _map_edits(edits: ContainerEdits, host_path: Callable[[str], str]) -> ContainerEdits:
    nodes = [
        item.model_copy(update={"hostPath": item.hostPath and host_path(item.hostPath)})
        for item in edits.deviceNodes
    ]
    mounts = [
        item.model_copy(update={"hostPath": host_path(item.hostPath)}) for item in edits.mounts
    ]
    return edits.model_copy(update={"deviceNodes": nodes, "mounts": mounts})


def gpu_minors(data: bytes) -> frozenset[int]:
    """Return the minors of the GPUs in a written spec; none if it is torn."""
    try:
        spec = Spec.model_validate_json(data)
    except pydantic.ValidationError:
        return frozenset()
    nodes = (node for edits in spec.all_edits for node in edits.deviceNodes)
    matches = (_GPU_NODE.fullmatch(node.path) for node in nodes)
    return frozenset(int(match[1]) for match in matches if match)


def render_canonical(spec: Spec, common: bytes | None = None) -> bytes:
    """Return the bytes to write: least version, sorted keys, no empty field.

    `common` is `render_edits` of its common edits.
    """
    parts = {
        "cdiVersion": pydantic_core.to_json(least_version(spec)),
        "containerEdits": render_edits(spec.containerEdits) if common is None else common,
        "devices": _render(spec.devices),
        "kind": pydantic_core.to_json(spec.kind),
    }
    # No text of JSON holds a line's end, so that nesting is more indentation.
    lines = (b' "%s": %s' % (name.encode(), part) for name, part in parts.items())
    return b"{\n%s\n}\n" % b",\n".join(lines)


def render_edits(edits: ContainerEdits) -> bytes:
    """Return edits as part of `render_canonical`."""
    return _render(edits)


def _render(part: pydantic.BaseModel | list[Device]) -> bytes:
    plain = pydantic_core.to_jsonable_python(part, exclude_none=True)
    return pydantic_core.to_json(_sorted_without_empty(plain), indent=1).replace(b"\n", b"\n ")


def least_version(spec: Spec) -> str:
    """Return the oldest CDI version that supports the spec: old runtimes refuse newer ones."""
    if "." in spec.kind.partition("/")[2]:
        return "0.6.0"
    digit_first = any(device.name[0].isdigit() for device in spec.devices)
    has_host_path = any(node.hostPath for edits in spec.all_edits for node in edits.deviceNodes)
    return "0.5.0" if digit_first or has_host_path else OLDEST


def _bad_input(error: pydantic.ValidationError) -> errors.BadInput:
    first = error.errors(include_url=False)[0]
    location = ".".join(str(part) for part in first["loc"]) or "spec"
    return errors.BadInput(f"CDI {location}", str(first["msg"]))


def _name_problems(spec: Spec) -> Iterator[allow.Problem]:
    names = [device.name for device in spec.devices]
    if len(set(names)) != len(names):
        yield "devices", "has a name twice", "different names"


def _problems(spec: Spec, limits: allow.Limits) -> Iterator[allow.Problem]:
    yield from _name_problems(spec)
    for device in spec.devices:
        if device.containerEdits.is_empty:
            yield f"devices[{device.name}]", "edits nothing", "an edit"
        if device.containerEdits.hooks:
            yield f"devices[{device.name}].hooks", "are there", "hooks for all devices alike"
    for edits in spec.all_edits:
        yield from _edit_problems(edits, limits)


def _edit_problems(edits: ContainerEdits, limits: allow.Limits) -> Iterator[allow.Problem]:
    for variable in edits.env:
        yield from allow.check_variable(variable)
    for node in edits.deviceNodes:
        yield from limits.check_node(node.path, node.hostPath or node.path)
    for mount in edits.mounts:
        yield from limits.check_mount(mount.hostPath, mount.containerPath, mount.options)
    for hook in edits.hooks:
        yield from limits.check_hook(hook.path, hook.args, hook.env)


def _sorted_without_empty(value: object) -> object:
    if isinstance(value, dict):
        items = {key: _sorted_without_empty(value[key]) for key in sorted(value)}
        return {key: inner for key, inner in items.items() if inner not in ([], {})}
    if isinstance(value, list):
        return [_sorted_without_empty(inner) for inner in value]
    return value

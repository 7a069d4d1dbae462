"""Decoding opaque configuration, strictly, and saying who wins (D13).

The order in an allocation is class configuration first, then the claim's; the last that applies
to a request wins, and is used whole.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import pydantic

from driver import errors, names
from driver.api import nvidia, v1alpha1

Kind = Literal["GpuConfig", "MigDeviceConfig"]
"""What a device can be configured by: MIG devices have a kind of their own."""
_OURS: Mapping[str, type[v1alpha1.GpuConfig] | type[v1alpha1.MigDeviceConfig]] = {
    "GpuConfig": v1alpha1.GpuConfig,
    "MigDeviceConfig": v1alpha1.MigDeviceConfig,
}
_STRATEGIES = frozenset({"TimeSlicing", "MPS"})
_VERSIONS = (names.CONFIG_VERSION, nvidia.VERSION)


@dataclass(frozen=True, slots=True)
class Document:
    """A configuration, where it stands, and the requests it names; () for all."""

    config: v1alpha1.Config
    where: str
    requests: tuple[str, ...] = ()

    def names(self, request: str) -> bool:
        """Whether it names a request, by its base name (`main`) or a subrequest (`main/sub`)."""
        return request in self.requests or request.partition("/")[0] in self.requests


def config(
    parameters: Mapping[str, object], where: str, *, from_class: bool = False
) -> v1alpha1.Config:
    """Read one opaque configuration document, ours or NVIDIA's.

    Raises:
        BadInput: what is wrong, at which path under `where`, and what was expected.
    """
    version, kind = parameters.get("apiVersion"), parameters.get("kind")
    if version not in _VERSIONS:
        wanted = " or ".join(repr(one) for one in _VERSIONS)
        raise errors.BadInput(f"{where}.apiVersion", f"is {version!r}", wanted)
    if not isinstance(kind, str) or kind not in _OURS:
        raise errors.BadInput(f"{where}.kind", f"is {kind!r}", f"one of {', '.join(_OURS)}")
    found = _read(parameters, where, str(version), kind)
    if isinstance(found, v1alpha1.GpuConfig) and found.crossNamespace and not from_class:
        raise errors.BadInput(
            f"{where}.crossNamespace", "is for DeviceClasses", "it in the class's configuration"
        )
    return found


def _read(parameters: Mapping[str, object], where: str, version: str, kind: str) -> v1alpha1.Config:
    theirs = version == nvidia.VERSION
    model: type[pydantic.BaseModel] = nvidia.KINDS[kind] if theirs else _OURS[kind]
    try:
        if theirs:
            return nvidia.KINDS[kind].model_validate(dict(parameters)).ours()
        return _OURS[kind].model_validate(dict(parameters))
    except pydantic.ValidationError as error:
        raise _bad(error, where, model) from error


def winner(documents: Iterable[Document], request: str, kind: Kind) -> v1alpha1.Config:
    """The configuration of a request for a device of that kind; the default where none applies.

    A document for all requests is for those whose devices it suits.

    Raises:
        BadInput: a document names the request, and its kind is another's.
    """
    found: v1alpha1.Config = _OURS[kind]()
    for one in documents:
        if one.requests and not one.names(request):
            continue
        if one.config.kind == kind:
            found = one.config
        elif one.requests:
            what = f"is {one.config.kind}, and request {request} got a device for {kind}"
            raise errors.BadInput(f"{one.where}.kind", what, kind)
    return found


def _bad(
    error: pydantic.ValidationError, where: str, model: type[pydantic.BaseModel]
) -> errors.BadInput:
    first = error.errors()[0]
    path = ".".join([where, *_fields_of(first["loc"])])
    if first["type"] == "extra_forbidden":
        known = f"one of {', '.join(sorted(model.model_fields))}" if len(first["loc"]) == 1 else ""
        return errors.BadInput(path, "is not a field", known)
    return errors.BadInput(path, first["msg"].removeprefix("Value error, "))


def _fields_of(location: tuple[int | str, ...]) -> Iterator[str]:
    """A place as the document has it: pydantic names the strategy too that was chosen there."""
    before: int | str = ""
    for part in location:
        if before != "sharing" or part not in _STRATEGIES:
            yield str(part)
        before = part

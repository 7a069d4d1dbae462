"""Decoding opaque configuration, strictly, and saying who wins (D13).

The order in an allocation is class configuration first, then the claim's; the last that applies
to a request wins, and is used whole. That is so for each question: how a device is set up is for
GpuConfig and MigDeviceConfig to say, what kind of part it may be for SliceConfig.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import pydantic

from driver import errors, names
from driver.api import nvidia, v1alpha1, validation

Kind = Literal["GpuConfig", "MigDeviceConfig"]
"""What a device can be configured by: MIG devices have a kind of their own."""
_SETTINGS: Mapping[Kind, type[v1alpha1.GpuConfig] | type[v1alpha1.MigDeviceConfig]] = {
    "GpuConfig": v1alpha1.GpuConfig,
    "MigDeviceConfig": v1alpha1.MigDeviceConfig,
}
_Model = type[v1alpha1.GpuConfig] | type[v1alpha1.MigDeviceConfig] | type[v1alpha1.SliceConfig]
_OURS: Mapping[str, _Model] = {
    "GpuConfig": v1alpha1.GpuConfig,
    "MigDeviceConfig": v1alpha1.MigDeviceConfig,
    "SliceConfig": v1alpha1.SliceConfig,
}
_STRATEGIES = frozenset({"TimeSlicing", "MPS"})
_LONGEST_SHOWN = 100
_VERSIONS = (names.CONFIG_VERSION, nvidia.VERSION)


@dataclass(frozen=True, slots=True)
class Document:
    """A configuration, where it stands, and the requests it names; () for all."""

    config: v1alpha1.Document
    where: str
    requests: tuple[str, ...] = ()

    def names_request(self, request: str) -> bool:
        """Return whether it names a request (`main`) or a subrequest (`main/sub`)."""
        return request in self.requests or request.partition("/")[0] in self.requests

    def applies_to(self, request: str) -> bool:
        """Return whether it applies to a request: it names it, or none."""
        return not self.requests or self.names_request(request)


def decode_config(
    parameters: Mapping[str, object], path: str, *, from_class: bool = False
) -> v1alpha1.Document:
    """Read one opaque configuration document, ours or NVIDIA's.

    Raises:
        BadInput: what is wrong, at which path under `where`, and what was expected.
    """
    version, kind = parameters.get("apiVersion"), parameters.get("kind")
    if version not in _VERSIONS:
        model = " or ".join(repr(item) for item in _VERSIONS)
        raise errors.BadInput(f"{path}.apiVersion", f"is {_shown(version)}", model)
    kinds = _OURS if version == names.CONFIG_VERSION else nvidia.KINDS
    if not isinstance(kind, str) or kind not in kinds:
        raise errors.BadInput(f"{path}.kind", f"is {_shown(kind)}", f"one of {', '.join(kinds)}")
    document = _read(parameters, path, str(version), kind)
    if isinstance(document, v1alpha1.GpuConfig) and document.crossNamespace and not from_class:
        raise errors.BadInput(
            f"{path}.crossNamespace", "is for DeviceClasses", "it in the class's configuration"
        )
    return document


def _shown(value: object) -> str:
    """Return a plain value, else its kind: it may be a user's, of any size."""
    plain = value is None or isinstance(value, str | bool | float)
    return repr(value)[:_LONGEST_SHOWN] if plain else type(value).__name__


def _read(
    parameters: Mapping[str, object], path: str, version: str, kind: str
) -> v1alpha1.Document:
    theirs = version == nvidia.VERSION
    model: type[pydantic.BaseModel] = nvidia.KINDS[kind] if theirs else _OURS[kind]
    try:
        if theirs:
            return nvidia.KINDS[kind].model_validate(dict(parameters)).ours()
        return _OURS[kind].model_validate(dict(parameters))
    except UnicodeEncodeError as error:
        raise errors.BadInput(path, *validation.NO_UNICODE) from error
    except pydantic.ValidationError as error:
        raise _bad(error, path, model) from error


def find_slice_config(documents: Iterable[Document], request: str) -> v1alpha1.SliceConfig | None:
    """Return the isolation that a request needs, where it leaves the kind of part open."""
    result: v1alpha1.SliceConfig | None = None
    for document in documents:
        if isinstance(document.config, v1alpha1.SliceConfig) and document.applies_to(request):
            result = document.config
    return result


def select_config(
    documents: Iterable[Document], request: str, kind: Kind, *, shared: bool = False
) -> v1alpha1.Config:
    """The configuration of a request for a device of that kind; the default where none applies.

    A document for all requests is for those whose devices it suits, and so is one that names a
    request that may get either kind (`need`). `shared`: the device is a share of a GPU.

    Raises:
        BadInput: a document names the request, and its kind is another's.
    """
    result: v1alpha1.Config = _SETTINGS[kind]()
    applying = [document for document in documents if document.applies_to(request)]
    is_part = shared or kind == "MigDeviceConfig"
    either = is_part and find_slice_config(applying, request) is not None
    for document in applying:
        config = document.config
        if isinstance(config, v1alpha1.SliceConfig):
            if document.requests and not is_part:
                subject = (
                    f"is SliceConfig, and request {request} got a device that is no part of one"
                )
                raise errors.BadInput(f"{document.where}.kind", subject, kind)
        elif config.kind == kind:
            result = config
        elif document.requests and not either:
            subject = f"is {config.kind}, and request {request} got a device for {kind}"
            raise errors.BadInput(f"{document.where}.kind", subject, kind)
    return result


def _bad(
    error: pydantic.ValidationError, location: str, model: type[pydantic.BaseModel]
) -> errors.BadInput:
    first = error.errors()[0]
    path = ".".join([location, *_fields_of(first["loc"])])
    if first["type"] == "extra_forbidden":
        kinds = f"one of {', '.join(sorted(model.model_fields))}" if len(first["loc"]) == 1 else ""
        return errors.BadInput(path, "is not a field", kinds)
    return errors.BadInput(path, first["msg"].removeprefix("Value error, "))


def _fields_of(location: tuple[int | str, ...]) -> Iterator[str]:
    """A place as the document has it: pydantic names the strategy too that was chosen there."""
    previous: int | str = ""
    for part in location:
        if previous != "sharing" or part not in _STRATEGIES:
            yield str(part)
        previous = part

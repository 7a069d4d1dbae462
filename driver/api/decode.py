"""Decoding opaque configuration, strictly, and saying who wins (D13).

The order in an allocation is class configuration first, then the claim's; the last that applies
to a request wins.
"""

from collections.abc import Iterable, Mapping

import pydantic

from driver import errors, names
from driver.api import v1alpha1

_KINDS = {"GpuConfig": v1alpha1.GpuConfig}


def config(parameters: Mapping[str, object], where: str) -> v1alpha1.Config:
    """Read one opaque configuration document.

    Raises:
        BadInput: what is wrong, at which path under `where`, and what was expected.
    """
    version, kind = parameters.get("apiVersion"), parameters.get("kind")
    if version != names.CONFIG_VERSION:
        raise errors.BadInput(f"{where}.apiVersion", f"is {version!r}", repr(names.CONFIG_VERSION))
    model = _KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise errors.BadInput(f"{where}.kind", f"is {kind!r}", f"one of {', '.join(_KINDS)}")
    try:
        return model.model_validate(dict(parameters))
    except pydantic.ValidationError as error:
        raise _bad(error, where, model) from error


def winner(
    documents: Iterable[tuple[tuple[str, ...], v1alpha1.Config]], request: str
) -> v1alpha1.Config:
    """The configuration of a request: the last that names it, or names none; else the default.

    A document may name a request by its base name (`main`) or by a subrequest (`main/sub`).
    """
    found: v1alpha1.Config = v1alpha1.GpuConfig()
    base = request.partition("/")[0]
    for requests, document in documents:
        if not requests or request in requests or base in requests:
            found = document
    return found


def _bad(
    error: pydantic.ValidationError, where: str, model: type[pydantic.BaseModel]
) -> errors.BadInput:
    first = error.errors()[0]
    path = ".".join([where, *(str(part) for part in first["loc"])])
    if first["type"] == "extra_forbidden":
        known = ", ".join(sorted(model.model_fields))
        return errors.BadInput(path, "is not a field", f"one of {known}")
    return errors.BadInput(path, first["msg"])

"""Requests of a claim, their alternatives, and constraints between devices.

Unknown fields are not misread: `Request.unsupported` and `ClaimSpec.unsupported` name the fields
that this version does not weigh, and the claim is not allocated with that reason.
"""

import functools
import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace

from driver import errors
from driver.resources import fields, quantities
from driver.resources.core import tolerations as core_tolerations
from driver.resources.dra import device_classes

_SPECS = 4096
_SPEC = frozenset({"requests", "constraints", "config"})
_CONSTRAINT = frozenset({"requests", "matchAttribute", "distinctAttribute"})
_ASK = frozenset(
    {
        *("name", "deviceClassName", "selectors", "allocationMode", "count", "adminAccess"),
        *("tolerations", "capacity"),
    }
)
"""What is weighed; a claim that says more is not misread, it is refused."""


@dataclass(frozen=True, slots=True)
class Request:
    """`count` devices of a class. `all_devices` is allocationMode All.

    One with `alternatives` is `firstAvailable`: the first of them that can be had is taken, and
    nothing else is said of the request itself. Alternatives are named `request/subrequest`.
    """

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    count: int = 1
    all_devices: bool = False
    admin_access: bool = False
    tolerations: tuple[core_tolerations.Toleration, ...] = ()
    minimums: Mapping[str, quantities.Quantity] = field(default_factory=dict)
    alternatives: tuple["Request", ...] = ()
    unsupported: tuple[str, ...] = ()

    @property
    def alternatives_or_self(self) -> tuple["Request", ...]:
        """Requests that can satisfy it, in the order of preference."""
        return self.alternatives or (self,)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Devices of `requests`, or of all where none is named, agree or differ in an attribute."""

    attribute: str
    distinct: bool = False
    requests: tuple[str, ...] = ()

    def covers(self, request: str) -> bool:
        """Return whether it covers a request (`main`) or an alternative (`main/sub`)."""
        return not self.requests or names_request(self.requests, request)


def names_request(named: Container[str], request: str) -> bool:
    """Return whether `main`, or `main/sub`, is named: `main` stands for all its alternatives."""
    return request in named or request.partition("/")[0] in named


@dataclass(frozen=True, slots=True)
class Config:
    """Opaque configuration for some requests; () means all of them."""

    requests: tuple[str, ...]
    opaque: fields.Raw


@dataclass(frozen=True, slots=True, eq=False)
class ClaimSpec:
    """`spec.devices` of a claim. Claims of one template share one object: compare by identity."""

    requests: tuple[Request, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    configs: tuple[Config, ...] = ()
    unsupported: tuple[str, ...] = ()


def parse(spec: fields.Raw) -> ClaimSpec:
    """Read `spec.devices`; equal ones give the same object while they are in use.

    Raises:
        BadInput: a field has another type than the API's.
    """
    field_path = "spec.devices"
    deep = [
        path for path, item in fields.objects(spec, "config", field_path) if fields.is_deep(item)
    ]
    if deep:
        shallow = [item for item in fields.sequence(spec, "config") if not fields.is_deep(item)]
        beyond = tuple(f"{path}, nested deeper than {fields.MOST_NESTED} levels" for path in deep)
        claim_spec = parse({**spec, "config": shallow})
        return replace(claim_spec, unsupported=(*claim_spec.unsupported, *beyond))
    try:
        return _parse(json.dumps(spec, sort_keys=True))
    except RecursionError as error:
        raise errors.BadInput(field_path, "is nested too deeply", "what the API defines") from error


@functools.lru_cache(maxsize=_SPECS)
def _parse(text: str) -> ClaimSpec:
    spec, field_path = json.loads(text), "spec.devices"
    return ClaimSpec(
        requests=tuple(
            _request(item, path) for path, item in fields.objects(spec, "requests", field_path)
        ),
        constraints=tuple(
            _constraint(item, path)
            for path, item in fields.objects(spec, "constraints", field_path)
        ),
        configs=tuple(
            Config(fields.texts(item, "requests", path), fields.mapping(item, "opaque", path))
            for path, item in fields.objects(spec, "config", field_path)
        ),
        unsupported=tuple(_beyond(spec, field_path)),
    )


def _beyond(spec: fields.Raw, field_path: str) -> Iterator[str]:
    yield from (f"{field_path}.{key}" for key in spec if key not in _SPEC and spec[key])
    for path, item in fields.objects(spec, "constraints", field_path):
        yield from (f"{path}.{key}" for key in item if key not in _CONSTRAINT and item[key])
        if not item.get("matchAttribute") and not item.get("distinctAttribute"):
            yield path


def _constraint(obj: fields.Raw, path: str) -> Constraint:
    matched = fields.text(obj, "matchAttribute", path)
    return Constraint(
        attribute=matched or fields.text(obj, "distinctAttribute", path),
        distinct=not matched,
        requests=fields.texts(obj, "requests", path),
    )


def _request(obj: fields.Raw, field_path: str) -> Request:
    name = fields.required_text(obj, "name", field_path)
    several = tuple(
        _ask(item, path, f"{name}/{fields.required_text(item, 'name', path)}")
        for path, item in fields.objects(obj, "firstAvailable", field_path)
    )
    if several:
        return Request(name, "", alternatives=several)
    exact = fields.mapping(obj, "exactly", field_path)
    if not exact:
        return Request(
            name, "", unsupported=tuple(key for key in obj if key != "name") or ("exactly",)
        )
    return _ask(exact, f"{field_path}.exactly", name)


def _ask(obj: fields.Raw, path: str, name: str) -> Request:
    capacity = fields.mapping(fields.mapping(obj, "capacity", path), "requests", path)
    mode = fields.text(obj, "allocationMode", path, "ExactCount")
    beyond = [key for key in obj if key not in _ASK and obj[key]]
    if mode not in {"ExactCount", "All"}:
        beyond.append(f"allocationMode: {mode}")
    return Request(
        name=name,
        device_class=fields.text(obj, "deviceClassName", path),
        selectors=device_classes.expressions(obj, path),
        count=fields.integer(obj, "count", path, default=1),
        all_devices=mode == "All",
        admin_access=fields.flag(obj, "adminAccess", path),
        tolerations=core_tolerations.parse(obj, "tolerations", path),
        minimums={
            key: quantities.parse(value, f"{path}.capacity") for key, value in capacity.items()
        },
        unsupported=tuple(beyond),
    )

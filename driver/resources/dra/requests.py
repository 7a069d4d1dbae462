"""What a claim asks: requests, their alternatives, and constraints between devices.

What uses a field that this version does not weigh is not misread: `Request.beyond` and
`Spec.beyond` name the fields, and the claim ends as not allocated with that reason.
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
    """`count` devices of a class. `everything` is allocationMode All.

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
        """What may answer it, in the order of preference."""
        return self.alternatives or (self,)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Devices of `requests`, or of all where none is named, agree or differ in an attribute."""

    attribute: str
    distinct: bool = False
    requests: tuple[str, ...] = ()

    def covers(self, request: str) -> bool:
        """Whether it is on the devices of a request (`main`) or an alternative (`main/sub`)."""
        return not self.requests or names_request(self.requests, request)


def names_request(named: Container[str], request: str) -> bool:
    """Whether `main`, or `main/sub`, is named: `main` stands for all its alternatives."""
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
    at = "spec.devices"
    deep = [path for path, one in fields.objects(spec, "config", at) if fields.is_deep(one)]
    if deep:
        shallow = [one for one in fields.sequence(spec, "config") if not fields.is_deep(one)]
        beyond = tuple(f"{path}, nested deeper than {fields.MOST_NESTED} levels" for path in deep)
        found = parse({**spec, "config": shallow})
        return replace(found, unsupported=(*found.unsupported, *beyond))
    try:
        return _parse(json.dumps(spec, sort_keys=True))
    except RecursionError as error:
        raise errors.BadInput(at, "is nested too deeply", "what the API defines") from error


@functools.lru_cache(maxsize=_SPECS)
def _parse(text: str) -> ClaimSpec:
    spec, at = json.loads(text), "spec.devices"
    return ClaimSpec(
        requests=tuple(_request(one, path) for path, one in fields.objects(spec, "requests", at)),
        constraints=tuple(
            _constraint(one, path) for path, one in fields.objects(spec, "constraints", at)
        ),
        configs=tuple(
            Config(fields.texts(one, "requests", path), fields.mapping(one, "opaque", path))
            for path, one in fields.objects(spec, "config", at)
        ),
        unsupported=tuple(_beyond(spec, at)),
    )


def _beyond(spec: fields.Raw, at: str) -> Iterator[str]:
    yield from (f"{at}.{key}" for key in spec if key not in _SPEC and spec[key])
    for path, one in fields.objects(spec, "constraints", at):
        yield from (f"{path}.{key}" for key in one if key not in _CONSTRAINT and one[key])
        if not one.get("matchAttribute") and not one.get("distinctAttribute"):
            yield path


def _constraint(obj: fields.Raw, at: str) -> Constraint:
    matched = fields.text(obj, "matchAttribute", at)
    return Constraint(
        attribute=matched or fields.text(obj, "distinctAttribute", at),
        distinct=not matched,
        requests=fields.texts(obj, "requests", at),
    )


def _request(obj: fields.Raw, at: str) -> Request:
    name = fields.required_text(obj, "name", at)
    several = tuple(
        _ask(one, path, f"{name}/{fields.required_text(one, 'name', path)}")
        for path, one in fields.objects(obj, "firstAvailable", at)
    )
    if several:
        return Request(name, "", alternatives=several)
    exact = fields.mapping(obj, "exactly", at)
    if not exact:
        return Request(
            name, "", unsupported=tuple(key for key in obj if key != "name") or ("exactly",)
        )
    return _ask(exact, f"{at}.exactly", name)


def _ask(obj: fields.Raw, at: str, name: str) -> Request:
    capacity = fields.mapping(fields.mapping(obj, "capacity", at), "requests", at)
    mode = fields.text(obj, "allocationMode", at, "ExactCount")
    beyond = [key for key in obj if key not in _ASK and obj[key]]
    if mode not in {"ExactCount", "All"}:
        beyond.append(f"allocationMode: {mode}")
    return Request(
        name=name,
        device_class=fields.text(obj, "deviceClassName", at),
        selectors=device_classes.expressions(obj, at),
        count=fields.integer(obj, "count", at, default=1),
        all_devices=mode == "All",
        admin_access=fields.flag(obj, "adminAccess", at),
        tolerations=core_tolerations.parse(obj, "tolerations", at),
        minimums={
            key: quantities.parse(value, f"{at}.capacity") for key, value in capacity.items()
        },
        unsupported=tuple(beyond),
    )

"""Device selectors in CEL, as Kubernetes evaluates them (KEP-4381, `cel/compile.go` of DRA). Pure.

What is provided, what is not and why: docs/reference/selectors.md. An expression that needs what is
not provided ends as "not allocated" with that reason; it is never guessed.
"""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cel_expr_python import cel

from driver import errors
from driver.devices import attributes as device_attributes
from driver.resources import quantities
from driver.resources.cel import checked_expr, environment, field_usage, rewriter, validator
from driver.resources.cel.cost import estimator
from driver.resources.cel.library import quantity as library_quantity
from driver.resources.cel.library import semver

MAX_EXPRESSION_BYTES = 10 * 1024
_Scalar = bool | int | str | device_attributes.Version
Value = _Scalar | tuple[_Scalar, ...]


@dataclass(frozen=True, slots=True)
class Device:
    """View of a device for selectors. Keys are `id` (the driver's own domain) or `domain/id`."""

    driver: str
    attributes: Mapping[str, Value]
    capacity: Mapping[str, quantities.Quantity]
    allow_multiple: bool = False


@dataclass(frozen=True, slots=True)
class UnusableSelector:
    """An expression we cannot evaluate, and why: a *no* with its reason."""

    expression: str
    why: str


@dataclass(frozen=True, slots=True)
class EvaluationFailure:
    """A run-time error of a selector on one device."""

    why: str


_Part = Callable[[Device], object]


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled selector.

    `reads` is all that its answer depends on: names `domain/id`, of attributes and capacity alike
    and in full where a device has them short, `driver` and `allowMultipleAllocations`. None where
    it may read anything.
    """

    expression: str
    reads: frozenset[str] | None
    _program: cel.Expression
    _parts: tuple[tuple[str, _Part], ...]

    def matches(self, device: Device) -> bool | EvaluationFailure:
        """Return whether the selector is true for a device."""
        try:
            data = {variable: part(device) for variable, part in self._parts}
            answer = self._program.eval(data=data).plain_value()
        except ValueError as error:  # a version that is none
            return EvaluationFailure(str(error))
        except RuntimeError as error:  # the engine's own, of what it cannot evaluate at all
            return EvaluationFailure(_first_complaint(str(error)))
        except TypeError:  # a value that Python has none for, such as an optional
            return EvaluationFailure("gives no bool")
        return answer if isinstance(answer, bool) else EvaluationFailure(str(answer))


@functools.lru_cache(maxsize=4096)
def compile_selector(expression: str) -> Selector | UnusableSelector:
    """Compile once per distinct text."""
    try:
        length = len(expression.encode())
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can write
        return UnusableSelector(expression, "is no Unicode text")
    if length > MAX_EXPRESSION_BYTES:
        return UnusableSelector(expression, f"longer than {MAX_EXPRESSION_BYTES} bytes")
    try:
        compiled = environment.checking_env().compile(expression)
        if compiled.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
            return UnusableSelector(
                expression, f"gives {compiled.return_type().name()}, expected bool"
            )
        return _planned(expression, checked_expr.read(compiled))
    except RuntimeError as error:
        return UnusableSelector(expression, _first_complaint(str(error)))
    except errors.BadInput as error:
        return UnusableSelector(expression, error.problem)


def _planned(expression: str, tree: checked_expr.Tree) -> Selector | UnusableSelector:
    for complaint in validator.violations(tree):
        return UnusableSelector(expression, complaint)
    most = estimator.estimate_cost(tree)
    if most > estimator.LIMIT:
        return UnusableSelector(expression, f"may cost {most}, more than {estimator.LIMIT}")
    maker = rewriter.Maker(tree)
    accesses = field_usage.Accesses(maker)
    root = accesses.rewrite(rewriter.Functions(tree, maker).rewrite(tree.root))
    program = environment.evaluation_env().deserialize(checked_expr.write(tree, root))
    return Selector(expression, _names(accesses.reads), program, _parts(accesses.reads))


def _names(reads: field_usage.DeviceReads) -> frozenset[str] | None:
    if reads.full or reads.whole:
        return None
    result = {f"{domain.name}/{id_}" for domain, ids in reads.domains.items() for id_ in ids}
    return frozenset(result | reads.names)


def _parts(reads: field_usage.DeviceReads) -> tuple[tuple[str, _Part], ...]:
    """Return the builder of each variable."""
    entries: dict[str, _Part] = {f"@{which}": _whole(which) for which in reads.whole}
    for domain, identifiers in reads.domains.items():
        entries[domain.variable] = _chosen(domain, tuple(identifiers))
    for domain in reads.full:
        entries[domain.variable] = _full(domain)
    if field_usage.DRIVER in reads.names:
        entries[f"@{field_usage.DRIVER}"] = lambda device: device.driver
    if field_usage.ALLOW_MULTIPLE in reads.names:
        entries[f"@{field_usage.ALLOW_MULTIPLE}"] = lambda device: device.allow_multiple
    return tuple(entries.items())


def _chosen(domain: field_usage.Domain, identifiers: tuple[str, ...]) -> _Part:
    """The names of a domain that are read; a device has its driver's own without a domain."""
    desired = tuple((item, f"{domain.name}/{item}") for item in identifiers)

    def part(device: Device) -> object:
        values = _values(domain.which, device)
        own = device.driver == domain.name
        result = {}
        for identifier, name in desired:
            value = values.get(name)
            if value is None and own:
                value = values.get(identifier)
            if value is not None:
                result[identifier] = _seen(value)
        return result

    return part


def _full(domain: field_usage.Domain) -> _Part:
    whole = _whole(domain.which)

    def part(device: Device) -> object:
        return whole(device).get(domain.name, {})

    return part


def _whole(which: str) -> Callable[[Device], dict[str, dict[str, object]]]:
    def part(device: Device) -> dict[str, dict[str, object]]:
        obj: dict[str, dict[str, object]] = {}
        for key, value in _values(which, device).items():
            domain, _, identifier = key.rpartition("/")
            obj.setdefault(domain or device.driver, {})[identifier] = _seen(value)
        return obj

    return part


def _values(which: str, device: Device) -> Mapping[str, Value | quantities.Quantity]:
    return device.capacity if which == "capacity" else device.attributes


def _seen(value: Value | quantities.Quantity) -> object:
    """A value as CEL sees it."""
    match value:
        case device_attributes.Version():
            return semver.new_version(value.text)
        case quantities.Quantity():
            return library_quantity.new_quantity(value)
        case tuple():
            return [_seen(item) for item in value]
        case _:
            return value


def _first_complaint(text: str) -> str:
    """The first line of the compiler's report, without its status prefix and position."""
    line = text.splitlines()[0]
    return re.sub(r"^[A-Z_]+: (ERROR: <input>:\d+:\d+: )?", "", line)

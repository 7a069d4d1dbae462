"""Device selectors in CEL, as Kubernetes evaluates them (KEP-4381, `cel/compile.go` of DRA).

Provided: core CEL, `has`, `in`, comprehension macros, the strings, optional and bind extensions,
quantities, lists with `includes`, sets. Not yet provided: semver, regex, url, ip and cidr, format.
An expression that needs one of them does not compile here, and ends as "not allocated" with that
reason; it is never guessed.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from driver.cel import amounts, lists
from driver.resources import quantity

MAX_EXPRESSION_BYTES = 10 * 1024
_DOMAIN_LITERAL = re.compile(r"""["']([A-Za-z0-9.-]{1,63})["']""")

_DEVICE = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)


@dataclass(frozen=True, slots=True)
class Device:
    """What a selector sees of a device.

    Keys are `id` (the driver's own domain) or `domain/id`. Versions are given as `bytes`: opaque
    until their functions are provided, so that an ordering fails, as it does in Kubernetes.
    """

    driver: str
    attributes: Mapping[str, bool | int | str | bytes]
    capacity: Mapping[str, quantity.Quantity]
    allow_multiple: bool = False


@dataclass(frozen=True, slots=True)
class Unusable:
    """An expression we cannot evaluate, and why: a *no* with its reason."""

    expression: str
    why: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A run-time error of a selector on one device."""

    why: str


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled selector. `domains` are the literals that may name an attribute domain."""

    expression: str
    domains: frozenset[str]
    _program: cel.Expression

    def matches(self, device: Device) -> bool | Failed:
        """Whether the selector is true for a device."""
        try:
            value = self._program.eval(data={"device": _variables(device, self.domains)})
        except RuntimeError as error:  # the engine's own, of what it cannot evaluate at all
            return Failed(_first_complaint(str(error)))
        answer = value.plain_value()
        return answer if isinstance(answer, bool) else Failed(str(answer))


@functools.cache
def _environment() -> cel.Env:
    return cel.NewEnv(
        descriptor_pool=amounts.POOL,
        variables={"device": _DEVICE},
        extensions=[
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
        ],
        functions=[*amounts.functions(), *lists.functions(amounts.NOTHING)],
    )


@functools.lru_cache(maxsize=4096)
def compile_selector(expression: str) -> Selector | Unusable:
    """Compile once per distinct text."""
    if len(expression.encode()) > MAX_EXPRESSION_BYTES:
        return Unusable(expression, f"longer than {MAX_EXPRESSION_BYTES} bytes")
    try:
        program = _environment().compile(expression)
    except RuntimeError as error:
        return Unusable(expression, _first_complaint(str(error)))
    if program.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        return Unusable(expression, f"gives {program.return_type().name()}, expected bool")
    return Selector(expression, frozenset(_DOMAIN_LITERAL.findall(expression)), program)


def _first_complaint(text: str) -> str:
    """The first line of the compiler's report, without its status prefix and position."""
    line = text.splitlines()[0]
    return re.sub(r"^[A-Z_]+: (ERROR: <input>:\d+:\d+: )?", "", line)


def _variables(device: Device, domains: frozenset[str]) -> dict[str, object]:
    """The `device` variable. A domain the expression names but the device lacks is an empty map."""
    return {
        "driver": device.driver,
        "attributes": _by_domain(device.attributes, device.driver, domains),
        "capacity": _by_domain(
            {key: amounts.of(amount) for key, amount in device.capacity.items()},
            device.driver,
            domains,
        ),
        "allowMultipleAllocations": device.allow_multiple,
    }


def _by_domain(
    values: Mapping[str, object], driver: str, domains: frozenset[str]
) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {domain: {} for domain in domains | {driver}}
    for key, value in values.items():
        domain, _, identifier = key.rpartition("/")
        found.setdefault(domain or driver, {})[identifier] = value
    return found

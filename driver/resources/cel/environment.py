"""Environments of selectors: Kubernetes' (pkg/cel/environment/base.go). Pure.

Two environments of the engine: expressions are checked against the declarations of Kubernetes,
rewritten, and then evaluated with the functions of the engine and of this package.
"""

import functools
from typing import Any, Final

import yaml
from cel_expr_python import cel

from driver.resources.cel import messages
from driver.resources.cel.declarations import Overload, build_declarations, build_functions
from driver.resources.cel.library import format as library_format
from driver.resources.cel.library import ip_cidr, lists, quantity, semver, urls
from driver.resources.cel.library import strings as library_strings

_T: Final = cel.Type
_MACROS: Final[list[dict[str, Any]]] = [
    {"name": "bindings"},
    {"name": "optional"},
    {"name": "two-var-comprehensions"},
    {"name": "sets"},
    {"name": "lists", "version": 2},
]
_STRINGS: Final = {"name": "strings", "version": 2}
_AS_STRING: Final = {
    "string_to_string": "string",
    "bool_to_string": "bool",
    "int64_to_string": "int",
    "uint64_to_string": "uint",
    "double_to_string": "double",
    "bytes_to_string": "bytes",
    "timestamp_to_string": "timestamp",
    "duration_to_string": "duration",
}
"""`string` of the standard library, which lets nobody add to it; Kubernetes adds IPs."""
_OVERLOADS: Final = [
    *quantity.overloads(),
    *semver.overloads(),
    *ip_cidr.overloads(),
    *urls.overloads(),
    *library_format.overloads(),
    *library_strings.overloads(),
    *lists.overloads(),
]
_ACTS: Final = [
    *ip_cidr.implementations(),
    *library_format.implementations(),
    *lists.implementations(),
    *library_strings.implementations(),
]
_ORDERS: Final = {
    "_<_": "less",
    "_<=_": "less_equals",
    "_>_": "greater",
    "_>=_": "greater_equals",
}
_NUMBERS: Final = ("int", "uint", "double")
_ORDERED: Final = (*_NUMBERS, "bool", "string", "bytes", "timestamp", "duration")
CAPACITY: Final = "device.capacity"


def _orders() -> list[Overload]:
    """Comparisons, those of numbers of several types among them, which the engine has but hides."""
    mixed = [(item, other) for item in _NUMBERS for other in _NUMBERS if item != other]
    pairs = [*((item, item) for item in _ORDERED), *mixed]
    return [
        Overload(name, f"{order}_{'_'.join(_id(pair))}", pair, "bool", member=False)
        for name, order in _ORDERS.items()
        for pair in pairs
    ]


def _id(pair: tuple[str, str]) -> tuple[str, ...]:
    item, other = (f"{type_}64" if type_ in {"int", "uint"} else type_ for type_ in pair)
    return (item,) if item == other else (item, other)


@functools.cache
def checking_env() -> cel.Env:
    """Return the environment that checks expressions."""
    functions = build_declarations([*_OVERLOADS, *_orders(), *ip_cidr.as_string(_AS_STRING)])
    config = {
        "stdlib": {"exclude_functions": [{"name": name} for name in ("string", *_ORDERS)]},
        "extensions": _MACROS,
        "functions": functions,
    }
    amounts_by_name = _T.Map(_T.STRING, messages.message_type(messages.QUANTITY))
    return cel.NewEnv(
        descriptor_pool=messages.POOL,
        config=cel.NewEnvConfigFromYaml(yaml.safe_dump(config)),
        variables={
            "device": messages.message_type(messages.DEVICE),
            CAPACITY: _T.Map(_T.STRING, amounts_by_name),
        },
    )


@functools.cache
def evaluation_env() -> cel.Env:
    """Return the environment that evaluates rewritten expressions."""
    config = {"extensions": [*_MACROS, _STRINGS]}
    return cel.NewEnv(
        descriptor_pool=messages.POOL,
        config=cel.NewEnvConfigFromYaml(yaml.safe_dump(config)),
        functions=build_functions([*_OVERLOADS, *_ACTS]),
    )

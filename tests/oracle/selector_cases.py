"""Devices and verdicts of the tests that compare CEL selectors."""

from typing import Any

from driver.devices import attributes
from driver.resources import quantities
from driver.resources.cel import selector
from tests.oracle import selectors

DRIVER = "gpu.example.com"
DEVICE: dict[str, Any] = {
    "name": "gpu-0",
    "attributes": {
        "type": {"string": "gpu"},
        "cores": {"int": 8},
        "healthy": {"bool": True},
        "driverVersion": {"version": "580.82.7"},
        "other.example.com/zone": {"string": "a"},
    },
    "capacity": {"memory": {"value": "80Gi"}, "shares": {"value": "8"}},
    "allowMultipleAllocations": True,
}
LISTED = {
    "name": "gpu-0",
    "attributes": {
        **DEVICE["attributes"],
        "names": {"strings": ["a", "b"]},
        "numbers": {"ints": [1, 2, 3]},
        "flags": {"bools": [True, False]},
        "versions": {"versions": ["1.2.3", "2.0.0"]},
    },
    "capacity": DEVICE["capacity"],
    "allowMultipleAllocations": True,
}
SEEN = selector.Device(
    DRIVER,
    {
        "type": "gpu",
        "cores": 8,
        "healthy": True,
        "driverVersion": attributes.Version("580.82.7"),
        "other.example.com/zone": "a",
        "names": ("a", "b"),
        "numbers": (1, 2, 3),
        "flags": (True, False),
        "versions": (attributes.Version("1.2.3"), attributes.Version("2.0.0")),
    },
    {"memory": quantities.parse("80Gi"), "shares": quantities.parse("8")},
    allow_multiple=True,
)
"""The same device as selectors see it."""


def answered(
    expression: str, device: selector.Device
) -> selectors.Verdict | selector.UnusableSelector:
    compiled = selector.compile_selector(expression)
    if isinstance(compiled, selector.UnusableSelector):
        return compiled
    answer = compiled.matches(device)
    return (
        selectors.Failed(answer.why) if isinstance(answer, selector.EvaluationFailure) else answer
    )


def kind(verdict: Any) -> Any:
    """Errors have other words on each side."""
    if isinstance(verdict, bool):
        return verdict
    return "failed" if isinstance(verdict, selectors.Failed) else "refused"

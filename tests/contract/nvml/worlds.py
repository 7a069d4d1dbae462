"""Subjects of the suite: the fake in this process, the simulated library, a real GPU's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Fault = Callable[..., object]
"""A control call of the machine, by name and with plain text (simulator/control.py)."""


@dataclass(frozen=True)
class World:
    """NVML, initialised, under the fake's names."""

    nvml: Any
    fault: Fault

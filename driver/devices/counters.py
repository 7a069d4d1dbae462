"""Shared counters of a GPU's faces (KEP-4815): one counter set per GPU (D1).

Memory slices make placements exclude each other. Engines and multiprocessors are counted too, as
some are scarcer than slices: a GPU has one `+me` instance.
"""

import dataclasses
from collections.abc import Mapping
from typing import TypeAlias

from driver.devices import mig, model

Counters: TypeAlias = Mapping[str, int]
"""Amounts by counter name; zeros are omitted."""

UNDIVIDED: Counters = {"gpu": 1}
"""The set of a GPU that MIG cannot cut."""


def gpu_counters(gpu: model.Gpu) -> Counters:
    """Return all counters of a GPU; whole and shared faces consume all of them.

    A GPU has the engines that any uniform layout needs: the full profile alone may have fewer than
    seven small ones together use.
    """
    if gpu.mig is None or not gpu.mig.profiles:
        return UNDIVIDED
    totals: dict[str, int] = {_slice_name(number): 1 for number in gpu.mig.memory_slices}
    for profile in gpu.mig.profiles:
        for name, amount in _engine_counters(profile.engines).items():
            totals[name] = max(totals.get(name, 0), amount * profile.instances)
    return totals


def placement_counters(profile: mig.Profile, placement: mig.Placement) -> Counters:
    """Return what an instance of a profile consumes at a placement."""
    return {
        **{_slice_name(number): 1 for number in placement.slices},
        **_engine_counters(profile.engines),
    }


def _slice_name(number: int) -> str:
    return f"memory-slice-{number}"


_ENGINES = {field.name: field.name.replace("_", "-") for field in dataclasses.fields(mig.Engines)}
"""The counter of each kind of engine."""


def _engine_counters(engines: mig.Engines) -> dict[str, int]:
    amounts = ((name, getattr(engines, field)) for field, name in _ENGINES.items())
    return {name: amount for name, amount in amounts if amount}

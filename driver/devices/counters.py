"""What the faces of one GPU compete for (KEP-4815): one counter set a GPU (D1).

Memory slices make placements exclude each other. Engines and multiprocessors are counted too,
because some are scarcer than slices: of `+me` instances there is one a GPU.
"""

import dataclasses
from collections.abc import Mapping
from typing import TypeAlias

from driver.devices import mig, model

Counters: TypeAlias = Mapping[str, int]
"""Amounts by counter name; what is zero is left out."""

UNDIVIDED: Counters = {"gpu": 1}
"""The set of a GPU that MIG cannot cut."""


def gpu_counters(gpu: model.Gpu) -> Counters:
    """All that a GPU has; whole and shared faces consume every bit of it.

    Of engines a GPU has what any uniform layout needs: the full profile alone may name less than
    seven small ones together use.
    """
    if gpu.mig is None or not gpu.mig.profiles:
        return UNDIVIDED
    totals: dict[str, int] = {_slice_name(number): 1 for number in gpu.mig.memory_slices}
    for one in gpu.mig.profiles:
        for name, amount in _engine_counters(one.engines).items():
            totals[name] = max(totals.get(name, 0), amount * one.instances)
    return totals


def placement_counters(profile: mig.Profile, at: mig.Placement) -> Counters:
    """What an instance of a profile takes at a place."""
    return {**{_slice_name(number): 1 for number in at.slices}, **_engine_counters(profile.engines)}


def _slice_name(number: int) -> str:
    return f"memory-slice-{number}"


def _engine_counters(engines: mig.Engines) -> dict[str, int]:
    amounts = dataclasses.asdict(engines)
    return {name.replace("_", "-"): amount for name, amount in amounts.items() if amount}

"""Figures of the node's records. Pure."""

from collections.abc import Callable, Sequence
from typing import Final

from driver import ids
from driver.kubeletplugin.records import checkpoint
from driver.runtime.metrics.families import Family, Figures

COUNT: Final = Family("dra_gpu_plugin_records", "Claim records on the node, by state.", ("state",))
AGE: Final = Family(
    "dra_gpu_plugin_oldest_record_age_seconds",
    "Age of the oldest record in the state; 0 without one. An old started record is a "
    "Prepare or Unprepare that does not end.",
    ("state",),
)
READABLE: Final = Family(
    "dra_gpu_plugin_records_readable",
    "0 while the claim records are unreadable; no claim has series then.",
)
FAMILIES: Final = (COUNT, AGE, READABLE)


def record_figures(
    all_records: Sequence[checkpoint.Record],
    written: Callable[[ids.ClaimUid], float | None],
    now: float,
) -> Figures:
    """Return the figures; `written` returns a record's write time, in Unix seconds as `now`."""
    counts: dict[tuple[str, ...], float] = {}
    ages: dict[tuple[str, ...], float] = {}
    for state in checkpoint.State:
        times = [written(item.uid) for item in all_records if item.state is state]
        oldest = min((item for item in times if item is not None), default=now)
        counts[state.value,] = len(times)
        ages[state.value,] = max(0.0, now - oldest)
    return {COUNT.name: counts, AGE.name: ages, **READABLE.single(1)}

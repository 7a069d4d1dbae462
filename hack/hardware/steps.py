"""The steps by level. A step reads or changes one kind of thing, within a time of its own."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from hack.hardware import facts, host, machine, mps, mps_clients, own, product, reading, supervised

LEVELS: Final = ("read", "mps", "own")
"""Each includes the ones before. Only `own` changes settings of the machine."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step: `act` yields its facts; `undo` takes back what it changed, also after it was killed.

    `limit_s` is when it is killed.
    """

    name: str
    level: str
    limit_s: float
    act: Callable[[machine.Machine], Iterable[facts.Fact]]
    undo: Callable[[machine.Machine], None] | None = None

    @property
    def summary(self) -> str:
        """The first line of what the step says of itself."""
        return (self.act.__doc__ or "").splitlines()[0]


ALL: Final = (
    Step("host", "read", 30.0, host.host),
    Step("programs", "read", 180.0, host.programs),
    Step("inventory", "read", 60.0, product.inventory),
    Step("geometry", "read", 60.0, product.geometry),
    Step("functions", "read", 60.0, product.functions),
    Step("files", "read", 90.0, product.files),
    Step("times", "read", 120.0, reading.times),
    Step("recovery", "read", 60.0, reading.recovery),
    Step("beside", "read", 60.0, reading.beside),
    Step("processes", "read", 90.0, reading.processes),
    Step("events", "read", 120.0, reading.events),
    Step("mps-words", "mps", 120.0, mps.words),
    Step("mps-limits", "mps", 180.0, mps.limits),
    Step("mps-users", "mps", 120.0, mps.users),
    Step("mps-endings", "mps", 240.0, mps.endings),
    Step("mps-clients", "mps", 90.0, mps_clients.words),
    Step("mps-by-uuid", "mps", 90.0, mps_clients.limits_by_uuid),
    Step("mps-kills", "mps", 150.0, mps_clients.sudden_ends),
    Step("supervisor", "mps", 240.0, supervised.supervisor),
    Step("containers", "mps", 120.0, supervised.containers),
    Step("many-clients", "mps", 180.0, supervised.many),
    Step("mig", "own", 300.0, own.mig, own.undo_mig),
    Step("compute-mode", "own", 60.0, own.compute_mode, own.undo_compute_mode),
    Step("time-slice", "own", 90.0, own.time_slice, own.undo_time_slice),
    Step("reset", "own", 120.0, own.reset),
)


def upto(level: str, names: Iterable[str] = ()) -> tuple[Step, ...]:
    """Choose the steps of a level and of those before it; with `names`, these of them only."""
    chosen = frozenset(names)
    levels = LEVELS[: LEVELS.index(level) + 1]
    return tuple(
        step for step in ALL if step.level in levels and (not chosen or step.name in chosen)
    )


def by_name(name: str) -> Step:
    """Return a step. Raises KeyError."""
    return {step.name: step for step in ALL}[name]

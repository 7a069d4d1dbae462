"""Schedule of lanes and troubles, drawn from the seed: the same seed draws the same. Pure."""

import random  # noqa: TID251 - the same every time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

GPUS = 8
LONGEST_HOLD_S = 0.2
AGAIN = 0.1
"""Of pods: prepared once more while they run, as after a restart of the kubelet."""
CLAIMS = (1, 1, 1, 2, 3)
"""Of one pod: they are prepared in one call."""


class Face(StrEnum):
    """Face in which a GPU is allocated."""

    WHOLE = "whole"
    MPS = "mps"
    MIG = "mig"
    TS = "ts"


class Trouble(StrEnum):
    """Kind of a fault."""

    PLUGIN_KILLED = "plugin killed"
    SUPERVISOR_KILLED = "supervisor killed"
    MPS_DIED = "MPS daemon died"
    GPU_LOST = "GPU lost and back"
    REFUSED = "NVML refused MIG calls"
    SLOW = "NVML slow"
    XID = "Xid of an application"
    API_DOWN = "API server down"
    API_DROPPED = "API connections dropped"
    KUBELET_RESTARTED = "kubelet restarted"
    RUSH = "calls for a whole node at once"


KILLS = (Trouble.PLUGIN_KILLED, Trouble.SUPERVISOR_KILLED)
LIKELIER = 3
"""A kill than any other trouble, while there are kills."""


@dataclass(frozen=True, slots=True)
class Pod:
    """The faces its claims ask for, how long it runs, and whether it is prepared twice."""

    faces: tuple[Face, ...]
    hold_s: float
    again: bool


@dataclass(frozen=True, slots=True)
class Break:
    """A trouble, and the GPU it is of where it is of one."""

    trouble: Trouble
    gpu: int


def pods(seed: int, lane: int) -> Iterator[Pod]:
    """Yield the pods of one lane, without end."""
    numbers = random.Random(f"{seed}/{lane}")  # noqa: S311 - no secret
    while True:
        faces = tuple(numbers.choices(list(Face), k=numbers.choice(CLAIMS)))
        yield Pod(faces, numbers.uniform(0, LONGEST_HOLD_S), numbers.random() < AGAIN)


class Breaks:
    """Troubles one after the other."""

    def __init__(self, seed: int, among: Sequence[Trouble]) -> None:
        self._numbers = random.Random(f"{seed}/troubles")  # noqa: S311 - no secret
        self._among = tuple(among)
        self._first = [trouble for trouble in self._among if trouble in KILLS]
        self._then = [trouble for trouble in self._among if trouble is Trouble.RUSH]

    def draw(self, *, killing: bool) -> Break:
        """Draw the next trouble: each kind of kill first of all, later kills only while `killing`.

        A run may be so short, or its machine so fast, that no trouble falls into its first cycles;
        the kills are a part of it all the same. After the kills the rush comes first: from then on
        the process that lives to the end has as many threads as it ever needs, and one more is one
        too many.
        """
        if first := self._first or ([] if killing else self._then):
            return Break(first.pop(0), 0)
        others = [trouble for trouble in self._among if trouble not in KILLS]
        kills = (
            [trouble for trouble in self._among if trouble in KILLS] * LIKELIER if killing else []
        )
        return Break(self._numbers.choice(kills + others), self._numbers.randrange(GPUS))

"""Days of two public traces: when jobs come, what they ask, how long they run. Pure.

`openb` (Alibaba, 2023): the pods with GPUs that came on a day, as long as they ran; most ask one
GPU or a part of one. What ran from days before, services for months mostly, is left out: nodes on
demand are for what comes and goes.

`Gavel` (Microsoft's Philly): what came on a day, gangs of up to 64 GPUs among it. The trace does
not say how long jobs run: 10**x minutes are drawn, x even from 1 to 2.5, ten minutes to five hours.
"""

import csv
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from driver.cli.simulation import openb

DAY_S = 86_400.0
SEED = 42
OPENB, GAVEL = "openb_pod_list_default.csv", "gavel_philly_11cb48.csv"
_ROOT = Path(__file__).parents[2]
_A_NODE = 8
_SHORT, _LONG = 1.0, 2.5
_CPU, _MEMORY = 12_000, 65_536
"""Of a GPU of Gavel's, which says nothing of these: milli-cores and MiB."""


@dataclass(frozen=True, slots=True)
class Job:
    """So many pods alike, which run together. Times in seconds; 0 is the day's beginning."""

    name: str
    pod: openb.Pod
    pods: int
    at: float
    lasts: float

    @property
    def gpus(self) -> float:
        """How many its pods have together."""
        return self.pods * self.pod.demand / openb.FULL


@dataclass(frozen=True, slots=True)
class Day:
    """One day of a trace: `openb 130`."""

    name: str
    jobs: tuple[Job, ...]


def folder() -> Path | None:
    """Where the traces are: `$RATION_TRACES`, or beside the checkout; None where they are not."""
    named = os.environ.get("RATION_TRACES")
    places = [Path(named)] if named else [_ROOT.parent / "shared" / "traces"]
    return next((one for one in places if all((one / f).is_file() for f in (OPENB, GAVEL))), None)


def of_openb(at: Path, number: int) -> Day:
    """A day of it. Raises BadInput."""
    begin = number * DAY_S
    found = [
        Job(row.name, row.pod, 1, row.created - begin, row.duration_s)
        for row in openb.read_pods((at / OPENB).read_text(), OPENB)
        if row.pod.gpus and row.created is not None and begin <= row.created < begin + DAY_S
        if row.duration_s
    ]
    return Day(f"openb {number}", _in_order(found))


def of_gavel(at: Path, number: int, seed: int = SEED) -> Day:
    """A day of it, with run times drawn by a seed."""
    of = random.Random(seed)  # noqa: S311 - no secret
    begin = number * DAY_S
    found: list[Job] = []
    for line, row in enumerate(csv.DictReader((at / GAVEL).read_text().splitlines())):
        lasts = 60 * 10 ** of.uniform(_SHORT, _LONG)
        came = float(row["arrival_s"]) - begin
        if 0 <= came < DAY_S:
            found.append(_job(f"job-{line:04}", int(row["gpus"]), came, lasts))
    return Day(f"Gavel {number}", _in_order(found))


def _job(name: str, gpus: int, at: float, lasts: float) -> Job:
    """Of one pod, or of several that have all GPUs of a node each."""
    pods = -(-gpus // _A_NODE)
    each = gpus // pods
    pod = openb.Pod(_CPU * each, _MEMORY * each, each, openb.FULL, ())
    return Job(name, pod, pods, at, lasts)


def _in_order(found: Sequence[Job]) -> tuple[Job, ...]:
    return tuple(sorted(found, key=lambda one: (one.at, one.name)))

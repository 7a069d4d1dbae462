"""`python -m benchmarks.queues.gangs`: how long it takes to decide about a gang of 512 pods.

All of it has places or none, by the default policies, on nodes with every face that our plugin
publishes. Beside it stands what KAI Scheduler takes for such a gang end to end, pods made and bound
included: on 500 nodes, which are empty, 48.7 s; 250 s where it does not fit. We decide only.
"""

import argparse
import time
from typing import NamedTuple

from benchmarks import record
from benchmarks.queues import busy
from driver.runtime import gc_tuning
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import tentative, topology
from driver.scheduling.gangs import types as gang_types

_NODES, _PODS, _ROUNDS = 500, 512, 15
_LARGER = 8


class _Asked(NamedTuple):
    """So many pods, each of so many GPUs."""

    pods: int
    gpus: int = 1


def run(*, quick: bool) -> list[record.Figure]:
    """Seconds of processor time until a gang's places are known, on a fleet that is ever fuller."""
    nodes, pods, rounds = (50, 64, 2) if quick else (_NODES, _PODS, _ROUNDS)
    fleet = busy.Fleet(nodes)
    gpus = nodes * busy.GPUS_A_NODE
    _decide(fleet, 1, 1)  # what a node looks like is found out once, whoever asks
    single = _Asked(pods)
    found = [_figure(fleet, "an empty fleet", single, rounds)]
    fleet.fill(gpus // 2)
    found.append(_figure(fleet, "half of it busy", single, rounds))
    found.append(_figure(fleet, "4 GPUs a pod, half busy", _Asked(pods // _LARGER, 4), rounds))
    fleet.fill(gpus // 2 - pods + 1)
    return [*found, _figure(fleet, "one GPU too few", single, rounds, fits=False)]


def _figure(
    fleet: busy.Fleet, what: str, asked: _Asked, rounds: int, *, fits: bool = True
) -> record.Figure:
    calibrations = record.Calibrations()
    taken = [
        _decide(fleet, asked.pods, asked.gpus, fits=fits)
        for _ in calibrations.between(range(rounds))
    ]
    name = f"gang of {asked.pods}, {len(fleet.view.nodes)} nodes: {what}"
    return calibrations.figure(name, "s", taken)


def _decide(fleet: busy.Fleet, pods: int, gpus: int, *, fits: bool = True) -> float:
    """Nothing is remembered from the gang before."""
    members = busy.gang(pods, gpus)
    deciding, near = busy.deciding(), topology.Topology()
    begun = time.process_time()
    answer = gang_placement.place_gang(members, fleet.view, near, deciding, tentative.FillCache())
    taken = time.process_time() - begun
    if isinstance(answer, gang_types.GangPlacement) is not fits:
        raise RuntimeError(f"a gang of {pods} {'does not fit' if fits else 'fits'}")
    return taken


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small fleet, few rounds")
    given = parser.parse_args()
    gc_tuning.set_thresholds()  # as the controller
    print(*map(record.line, run(quick=given.quick)), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""`python -m benchmarks.queues.plans`: how long it takes to find whom to evict.

Every GPU of the fleet has a job of one GPU, begun within the last day. Between two plans some jobs
end and others begin in their place, as in a cluster. Beside it stands what KAI Scheduler takes
until a preemptor among as many jobs runs, end to end: 13.9 s. We plan only.
"""

import argparse
import time
from collections.abc import Callable, Sequence

from benchmarks import record
from benchmarks.queues import busy
from driver.resources import disruption_budgets
from driver.runtime import gc_tuning
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.preemption import planner as planning
from driver.scheduling.preemption import policy as preemption_policy
from driver.scheduling.preemption import types as preemption_types

_NODES, _TURNS, _ROUNDS = 500, 9, 5
"""The kinds take turns of so many plans each: one of a GPU takes a hundredth of a second."""
_CHANGES = 8
_Asks = Callable[[int], Sequence[allocator_types.Workload]]


def run(*, quick: bool) -> list[record.Figure]:
    """Milliseconds of processor time of plans for a pod of one GPU, one of eight, and a gang."""
    nodes, turns, pods = (50, 1, 8) if quick else (_NODES, _TURNS, 64)
    fleet = busy.Fleet(nodes)
    fleet.fill(nodes * busy.GPUS_A_NODE)
    planner = planning.Planner(busy.deciding())
    asks: dict[str, _Asks] = {
        "1 GPU": lambda at: [busy.asks(f"new-{at}")],
        "8 GPUs of a node": lambda at: [busy.asks(f"new-{at}", 8)],
        f"a gang of {pods}": lambda _at: busy.gang(pods),
    }
    taken: dict[str, list[float]] = {name: [] for name in asks}
    calibrations = record.Calibrations()
    for turn in calibrations.between(range(turns)):
        first = turn * (_ROUNDS + 1)
        for name, asks_for in asks.items():
            plans = [
                _plan(fleet, planner, asks_for(at)) for at in range(first, first + _ROUNDS + 1)
            ]
            taken[name] += plans[1:]  # the plan before the first was of another kind
    return [
        calibrations.figure(
            f"whom to evict of {nodes * busy.GPUS_A_NODE:,} jobs, for {name}", "ms", milliseconds
        )
        for name, milliseconds in taken.items()
    ]


def _plan(
    fleet: busy.Fleet, planner: planning.Planner, members: Sequence[allocator_types.Workload]
) -> float:
    fleet.change(_CHANGES)
    right = preemption_policy.PreemptionPolicy(
        preemption_policy.Preemptor(1000),
        preemption_policy.NoQueues(),
        disruption_budgets.BudgetIndex([]),
        busy.NOW,
        idles=False,
    )
    ask = preemption_types.PreemptionRequest(
        fleet.view, members, busy.deciding(), is_unschedulable=True
    )
    begun = time.process_time()
    found = planner.plan(ask, right, fleet.book)
    taken = (time.process_time() - begun) * 1000
    if not isinstance(found, preemption_types.Plan) or not found.is_optimal:
        raise RuntimeError("the cheapest plan was not found")
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

"""How good decisions are beside the best there is: `python -m benchmarks.quality`, some minutes.

The optima are exact: a solver for gangs near each other, exact weighted max-min shares for queues,
a Markov decision process for MIG instances on one GPU, every set of pods for whom to evict. Tests
hold more of each (tests/oracle, tests/properties); here are the figures.
"""

import statistics

from benchmarks import record
from benchmarks.placement import streams
from driver.scheduling.allocator import policies
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.explain import step_budget
from driver.scheduling.preemption import planner as planning
from driver.scheduling.preemption import types as preemption_types
from tests.oracle import forests, layouts, nearness
from tests.properties import ruled

CLUSTERS, TREES, WORLDS = 200, 20, 200
_ENOUGH = 10_000_000


def main() -> None:
    """Measure, print, store."""
    start = record.Start()
    record.write("quality", [_nearness(), _fairness(), _instances(), *_victims()], start)


def _nearness() -> record.Figure:
    """What the nearest places cost to what ours do, of gangs on eight nodes, the mean."""
    cases = (nearness.draw(seed) for seed in range(CLUSTERS))
    costs = ((nearness.optimum(case), nearness.ours(case)) for case in cases)
    shares = [100 * best / ours for best, ours in costs if best is not None and ours is not None]
    name = "gangs near each other on 8 nodes, of the optimum"
    return _mean(name, shares)


def _mean(name: str, shares: list[float]) -> record.Figure:
    """In percent; the spread is that of the cases."""
    figure = record.figure(name, "%", shares)
    return record.replaced(figure, statistics.fmean(shares))


def _fairness() -> record.Figure:
    """GPUs between a queue's average and its exact share, the worst of each random tree."""
    worst = []
    for seed in range(TREES):
        forest = forests.draw(seed)
        until = forests.LONGEST + forests.HOUR
        course = forests.course(forest, seed, forests.LONGEST, until)
        worst.append(max(map(abs, course.values())))
    name = "GPUs between a queue and its exact share, the worst queue of 20 trees"
    return record.replaced(record.figure(name, "", worst), max(worst))


def _instances() -> record.Figure:
    """Memory accepted on one GPU to what the best policy accepts that sees nothing ahead."""
    score = streams.product(ranking.parse_policies(",".join(policies.DEFAULT)), streams.machine())
    gpu = layouts.gpu(streams.model(), score, layouts.alike(streams.model(), score))
    sizes = {part.profile: part.mask.bit_count() for part in streams.model().placements}
    shares = []
    for weights in streams.MIXES.values():
        mix = dict(
            zip(streams.PROFILES, (weight / sum(weights) for weight in weights), strict=True)
        )
        for load in streams.LOADS:
            process = layouts.Process(gpu, sizes, mix, load, 1)
            ours, best = process.solve(process.ours), process.solve(process.best)
            shares.append(100 * ours.least / best.most)
    name = "MIG on one GPU: memory accepted, of the optimum, the worst of 6 mixes"
    return record.replaced(record.figure(name, "%", shares), min(shares))


def _victims() -> list[record.Figure]:
    """Of plans for pods and for gangs, how many are the cheapest that the law allows."""
    figures = []
    for whom, gang in (("a pod", False), ("a gang", True)):
        right = [_is_cheapest(ruled.world(seed, gang=gang)) for seed in range(WORLDS)]
        plans = [plan for plan in right if plan is not None]
        name = f"whom to evict for {whom}: plans that are the cheapest there are"
        figure = record.figure(name, "%", [100 * sum(plans) / len(plans)])
        figures.append(record.replaced(figure, figure.ours, f"{len(plans)} plans"))
    return figures


def _is_cheapest(world: ruled.World) -> bool | None:
    """None where nobody is to go."""
    plan = planning.make_plan(world.ask, world.right, world.book, step_budget.StepBudget(_ENOUGH))
    best = ruled.least(world)
    if isinstance(plan, preemption_types.NoPlan):
        return None if best is None else False
    return plan.cost == best


if __name__ == "__main__":
    main()

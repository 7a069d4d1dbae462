"""The trace through our allocator: real claims, slices and pods, on the engine of `simulate`."""

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.placement import openb, stopwatch
from driver import names
from driver.cli.simulation import openb as simulated
from driver.cli.simulation import replay as engine
from driver.cli.simulation import scheduler
from driver.scheduling.allocator import settings
from driver.scheduling.allocator.policies import base, ranking, workload_mix
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.snapshot import cluster_state


def usual(trace: openb.Trace) -> workload_mix.WorkloadMix:
    """What the trace usually asks, as our policies see it."""
    return workload_mix.build_mix((_demand(shape), part) for shape, part in openb.usual(trace))


def _demand(shape: openb.Pod) -> workload_mix.WorkloadShape:
    asked = base.MPS if shape.milli < openb.FULL else base.WHOLE
    mode = asked if shape.gpus else base.IDLE
    return workload_mix.WorkloadShape(
        mode, shape.gpus, shape.milli, shape.cpu, frozenset(shape.models)
    )


class Replayed(NamedTuple):
    """GPU thousandths in use after each arrival; decisions in a second of processor time."""

    used: list[int]
    rate: float


class _Desk(scheduler.SimulatedScheduler):
    """The desk of `simulate`, with a stopwatch."""

    def __init__(
        self,
        view: cluster_state.ClusterState,
        deciding: settings.Settings,
        *,
        every_pod: bool = False,
    ) -> None:
        super().__init__(view, deciding, every_pod=every_pod)
        self._allocator = self.watch = stopwatch.Stopwatch(deciding)


def replay(
    trace: openb.Trace,
    arriving: Sequence[openb.Pod],
    judge: ranking.PolicyChain,
    told: engine.Told = lambda _done, _of: None,
) -> Replayed:
    """One comes each second, and none leaves. `told` hears how many have come."""
    deciding = settings.Settings(judge, device_filter.ControllerRules(names.DRIVER))
    found = _Desk.from_caches(names.DRIVER, simulated.caches(trace.nodes), deciding, every_pod=True)
    maker = simulated.Maker()
    tasks = [maker.task(f"pod-{n}", pod, float(n)) for n, pod in enumerate(arriving)]
    report = engine.Replay(found, engine.ReplayRule(wait=False, leave=False), told).run(tasks)
    return Replayed([one.used for one in report.course], found.watch.rate)

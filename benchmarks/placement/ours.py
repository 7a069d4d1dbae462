"""The trace through our allocator: real claims, slices and pods, on the engine of `simulate`."""

from collections.abc import Sequence

from benchmarks.placement import openb
from driver import names
from driver.controller.allocation import filters, ranking, settings
from driver.controller.allocation.policies import base, mix
from driver.controller.simulation import desk
from driver.controller.simulation import openb as simulated
from driver.controller.simulation import replay as engine


def usual(trace: openb.Trace) -> mix.Mix:
    """What the trace usually asks, as our policies see it."""
    return mix.of((_demand(shape), part) for shape, part in openb.usual(trace))


def _demand(shape: openb.Pod) -> mix.Demand:
    asked = base.MPS if shape.milli < openb.FULL else base.WHOLE
    mode = asked if shape.gpus else base.IDLE
    return mix.Demand(mode, shape.gpus, shape.milli, shape.cpu, frozenset(shape.models))


def replay(trace: openb.Trace, arriving: Sequence[openb.Pod], judge: ranking.Ranking) -> list[int]:
    """GPU thousandths in use after each arrival: one comes each second, and none leaves."""
    deciding = settings.Settings(judge, filters.Rules(names.DRIVER))
    found = desk.Desk.of(names.DRIVER, simulated.caches(trace.nodes), deciding, every_pod=True)
    maker = simulated.Maker()
    tasks = [maker.task(f"pod-{n}", pod, float(n)) for n, pod in enumerate(arriving)]
    report = engine.Replay(found, engine.Rule(wait=False, leave=False)).run(tasks)
    return [one.used for one in report.course]

"""Configured workload mix: a `WorkloadMix` document as a mix. Pure."""

from driver.api import workload_mix
from driver.devices import faces
from driver.resources import quantities
from driver.scheduling.allocator.policies import base
from driver.scheduling.allocator.policies import workload_mix as policy_mix

_MODES = {
    faces.Kind.WHOLE: base.WHOLE,
    faces.Kind.MIG: base.MIG,
    faces.Kind.MPS: base.MPS,
    faces.Kind.TIME_SLICING: base.TIME_SLICING,
}
_THOUSANDTHS = base.FULL // 100
"""Thousandths in a percent."""


def build_mix(document: workload_mix.WorkloadMix) -> policy_mix.WorkloadMix:
    """Return the shapes of a document, by their weights."""
    return policy_mix.build_mix(
        (_workload_shape(workload), workload.weight) for workload in document.workloads
    )


def _workload_shape(workload: workload_mix.Workload) -> policy_mix.WorkloadShape:
    cpu = quantities.parse(workload.cpu).millis
    if not workload.gpus:
        return policy_mix.WorkloadShape(base.IDLE, 0, 0, cpu)
    part = base.FULL if workload.percent is None else workload.percent * _THOUSANDTHS
    return policy_mix.WorkloadShape(
        _MODES[workload.face], workload.gpus, part, cpu, frozenset(workload.products)
    )

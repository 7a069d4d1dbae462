"""What is usually asked, as an operator wrote it: a `UsualWorkloads` document as a mix. Pure."""

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
"""In a percent."""


def build_mix(document: workload_mix.UsualWorkloads) -> policy_mix.WorkloadMix:
    """The shapes it names, by their weights."""
    return policy_mix.build_mix((_workload_shape(one), one.weight) for one in document.workloads)


def _workload_shape(one: workload_mix.Workload) -> policy_mix.WorkloadShape:
    cpu = quantities.parse(one.cpu).millis
    if not one.gpus:
        return policy_mix.WorkloadShape(base.IDLE, 0, 0, cpu)
    part = base.FULL if one.percent is None else one.percent * _THOUSANDTHS
    return policy_mix.WorkloadShape(_MODES[one.face], one.gpus, part, cpu, frozenset(one.products))

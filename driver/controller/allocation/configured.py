"""What is usually asked, as an operator wrote it: a `UsualWorkloads` document as a mix. Pure."""

from driver.api import workloads
from driver.controller.allocation.policies import base, mix
from driver.devices import faces
from driver.resources import quantity

_MODES = {
    faces.Kind.WHOLE: base.WHOLE,
    faces.Kind.MIG: base.PARTS,
    faces.Kind.MPS: base.MPS,
    faces.Kind.TIME_SLICING: base.TIME_SLICING,
}
_THOUSANDTHS = base.FULL // 100
"""In a percent."""


def of(document: workloads.UsualWorkloads) -> mix.Mix:
    """The shapes it names, by their weights."""
    return mix.of((_demand(one), one.weight) for one in document.workloads)


def _demand(one: workloads.Workload) -> mix.Demand:
    cpu = quantity.parse(one.cpu).millis
    if not one.gpus:
        return mix.Demand(base.IDLE, 0, 0, cpu)
    part = base.FULL if one.percent is None else one.percent * _THOUSANDTHS
    return mix.Demand(_MODES[one.face], one.gpus, part, cpu, frozenset(one.products))

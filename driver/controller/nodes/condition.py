"""The Node condition that sums up its GPUs' health, shown by `kubectl describe node`. Pure."""

from collections.abc import Iterable

from driver import names, reasons
from driver.devices import faces
from driver.resources.core import nodes
from driver.resources.dra import slices

_SHOWN = 8


def gpu_condition(resource_slices: Iterable[slices.Slice]) -> nodes.GpuCondition | None:
    """Return the condition for the driver's slices of one node; None without a GPU.

    A GPU is unhealthy when a taint keeps one of its faces from new claims, the taints of D2 and of
    cordons excepted.
    """
    trouble: dict[str, set[str]] = {}
    for resource_slice in resource_slices:
        for device in resource_slice.devices:
            gpu = faces.gpu_name(device.name) or device.name
            trouble.setdefault(gpu, set()).update(
                _words(taint)
                for taint in device.taints
                if taint.blocks and taint.key not in names.NO_FAULTS
            )
    if not trouble:
        return None
    sick = {gpu: ", ".join(sorted(words)) for gpu, words in sorted(trouble.items()) if words}
    if not sick:
        text = f"{len(trouble)} GPUs are healthy"
        return nodes.GpuCondition("True", reasons.Reason.GPUS_HEALTHY, text)
    shown = [f"{gpu}: {words}" for gpu, words in list(sick.items())[:_SHOWN]]
    more = f" and {len(sick) - _SHOWN} more" if len(sick) > _SHOWN else ""
    text = f"{len(sick)} of {len(trouble)} GPUs are not healthy: {'; '.join(shown)}{more}"
    return nodes.GpuCondition("False", reasons.Reason.GPUS_UNHEALTHY, text)


def _words(taint: slices.Taint) -> str:
    return f"{taint.key}={taint.value}" if taint.value else taint.key

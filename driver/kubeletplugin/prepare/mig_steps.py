"""The executor's acts that change a GPU's MIG."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

import structlog

from driver import errors, ids
from driver.devices import model
from driver.kubeletplugin import ports
from driver.kubeletplugin.plan import mig, steps
from driver.kubeletplugin.prepare import executor, mig_mode_refusals
from driver.kubeletplugin.records import checkpoint

_log = structlog.get_logger(__name__)

PATIENCE_S = 10.0
"""How long processes have to leave an instance that is being destroyed, and other NVML clients to
let go of a GPU whose mode is to change: two such claims of one GPU fit into the wait for its lock,
and the kubelet tries again."""
_MODE_PATIENCE_S = 2.0
_CHANGED = "changed"


class MigActs:
    """`again` reads a GPU anew after its mode has changed, as its minor may have; DeviceFault.

    `owe` notes a GPU whose MIG could not be turned off when its last claim ended; NodeFault.
    """

    def __init__(
        self,
        partitions: ports.Partitions,
        again: Callable[[ids.GpuUuid], model.Gpu],
        owe: Callable[[ids.GpuUuid], None],
        refusals: mig_mode_refusals.ModeRefusals,
    ) -> None:
        self._partitions = partitions
        self._again = again
        self._owe = owe
        self._refusals = refusals

    def table(self) -> Mapping[str, executor.Act]:
        """Acts by name. MIG does not outlive a boot: after one there is nothing to take back."""
        return {
            mig.ON: self._on,
            mig.OFF_AGAIN: self._off_again,
            mig.OFF: self._off,
            mig.ON_AGAIN: self._on_again,
            mig.MAKE: self._make,
            mig.DESTROY: self._destroy,
        }

    def _on(self, step: steps.Step) -> checkpoint.Facts:
        with self._noting(step.gpu, mig_mode_refusals.OFF):
            self._partitions.enable(step.gpu, PATIENCE_S)
        self._read(step.gpu)
        return {}

    def _off_again(self, step: steps.Step) -> checkpoint.Facts:
        """Off, if the GPU lets it; else later: one that stays on serves the next claim as well."""
        if step.rebooted:
            return {}
        try:
            self._partitions.disable(step.gpu, _MODE_PATIENCE_S)
        except errors.DeviceFault as fault:
            _left(step, fault)
            self._owe(step.gpu)
        self._read(step.gpu)
        return {}

    def _off(self, step: steps.Step) -> checkpoint.Facts:
        with self._noting(step.gpu, mig_mode_refusals.ON):
            changed = self._partitions.disable(step.gpu, _MODE_PATIENCE_S)
        now = self._again(step.gpu).mig
        if now is not None and now.enabled:
            text = f"{len(now.instances)} instances lie on the GPU"
            raise errors.Unchanged(step.gpu, "turning MIG off", -1, text)
        return {_CHANGED: "yes" if changed else "no"}

    def _on_again(self, step: steps.Step) -> checkpoint.Facts:
        if step.rebooted or step.arguments.get(_CHANGED) == "no":
            return {}
        try:
            self._partitions.enable(step.gpu)
        except errors.DeviceFault as fault:
            _left(step, fault)
        self._read(step.gpu)
        return {}

    def _make(self, step: steps.Step) -> checkpoint.Facts:
        return mig.facts(self._partitions.make(mig.place(step)))

    def _destroy(self, step: steps.Step) -> checkpoint.Facts:
        if not step.rebooted:
            self._partitions.destroy(mig.place(step), PATIENCE_S)
        return {}

    @contextlib.contextmanager
    def _noting(self, gpu: ids.GpuUuid, stays: str) -> Iterator[None]:
        """Note whether the GPU takes the mode that a claim needs."""
        try:
            yield
        except errors.Unchanged:
            self._refusals.refused(gpu, stays)
            raise
        self._refusals.changed(gpu)

    def _read(self, gpu: ids.GpuUuid) -> None:
        with contextlib.suppress(errors.DeviceFault):  # then it is read before the next use
            self._again(gpu)


def _left(step: steps.Step, fault: errors.DeviceFault) -> None:
    _log.warning("MIG mode left as it is", act=step.act, gpu=step.gpu, error=str(fault))

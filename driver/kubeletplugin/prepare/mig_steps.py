"""The executor's steps that change a GPU's MIG."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

import structlog

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.host import discovery
from driver.kubeletplugin.plan import mig, steps
from driver.kubeletplugin.prepare import executor, mig_mode_refusals
from driver.kubeletplugin.records import checkpoint

_log = structlog.get_logger(__name__)

PATIENCE_S = 10.0
"""Time for processes to leave an instance that is being destroyed, and for other NVML clients to
release a GPU whose mode is to change: two such claims of one GPU fit into the wait for its lock,
and the kubelet retries.
"""
_MODE_PATIENCE_S = 2.0
_CHANGED = "changed"


class MigSteps:
    """`gpus` records every change, so that what is known from it is not read again.

    `add_pending` records a GPU whose MIG could not be disabled when its last claim ended;
    NodeFault.
    """

    def __init__(
        self,
        partitions: ports.Partitions,
        gpus: discovery.Discovery,
        add_pending: Callable[[ids.GpuUuid], None],
        refusals: mig_mode_refusals.ModeRefusals,
    ) -> None:
        self._partitions = partitions
        self._gpus = gpus
        self._add_pending = add_pending
        self._refusals = refusals

    def table(self) -> Mapping[str, executor.Act]:
        """Return acts by name. MIG does not outlive a boot: after one there is nothing to undo."""
        return {
            mig.ON: self._enable,
            mig.OFF_AGAIN: self._disable_after_claim,
            mig.OFF: self._disable,
            mig.ON_AGAIN: self._enable_after_claim,
            mig.MAKE: self._create,
            mig.DESTROY: self._destroy,
        }

    def _enable(self, step: steps.Step) -> checkpoint.Facts:
        with self._noting_refusal(step.gpu, mig_mode_refusals.OFF):
            changed = self._partitions.enable(step.gpu, PATIENCE_S)
        if changed:
            self._gpus.set_mig_mode(step.gpu, enabled=True)
        return {}

    def _disable_after_claim(self, step: steps.Step) -> checkpoint.Facts:
        """Disable MIG if possible, else later: if it stays on, the next claim can use it."""
        if step.rebooted:
            return {}
        try:
            changed = self._partitions.disable(step.gpu, _MODE_PATIENCE_S)
        except errors.DeviceFault as fault:
            _log_unchanged_mode(step, fault)
            self._add_pending(step.gpu)
            self._reread(step.gpu)
            return {}
        if changed:
            with contextlib.suppress(errors.DeviceFault):  # then it is read before the next use
                self._gpus.set_mig_mode(step.gpu, enabled=False)
        return {}

    def _disable(self, step: steps.Step) -> checkpoint.Facts:
        with self._noting_refusal(step.gpu, mig_mode_refusals.ON):
            changed = self._partitions.disable(step.gpu, _MODE_PATIENCE_S)
        layout = self._gpus.refresh_gpu(step.gpu).mig
        if layout is not None and layout.enabled:
            text = f"{len(layout.instances)} instances lie on the GPU"
            raise errors.Unchanged(step.gpu, "turning MIG off", -1, text)
        return {_CHANGED: "yes" if changed else "no"}

    def _enable_after_claim(self, step: steps.Step) -> checkpoint.Facts:
        if step.rebooted or step.arguments.get(_CHANGED) == "no":
            return {}
        try:
            self._partitions.enable(step.gpu)
        except errors.DeviceFault as fault:
            _log_unchanged_mode(step, fault)
        self._reread(step.gpu)
        return {}

    def _create(self, step: steps.Step) -> checkpoint.Facts:
        try:
            instance = self._partitions.create(mig.step_instance(step))
        except errors.DeviceFault:
            self._reread(step.gpu)  # another hand may have made one there
            raise
        self._gpus.add_instance(step.gpu, instance)
        return mig.instance_facts(instance)

    def _destroy(self, step: steps.Step) -> checkpoint.Facts:
        if not step.rebooted:
            ref = mig.step_instance(step)
            self._partitions.destroy(ref, PATIENCE_S, mig.created_instance(step))
            self._gpus.remove_instance(ref)
        return {}

    @contextlib.contextmanager
    def _noting_refusal(self, gpu: ids.GpuUuid, stays: str) -> Iterator[None]:
        """Record whether the GPU takes the mode that a claim needs."""
        try:
            yield
        except errors.Unchanged:
            self._refusals.add(gpu, stays)
            raise
        self._refusals.clear(gpu)

    def _reread(self, gpu: ids.GpuUuid) -> None:
        with contextlib.suppress(errors.DeviceFault):  # then it is read before the next use
            self._gpus.refresh_gpu(gpu)


def _log_unchanged_mode(step: steps.Step, fault: errors.DeviceFault) -> None:
    _log.warning("MIG mode left as it is", act=step.act, gpu=step.gpu, error=str(fault))

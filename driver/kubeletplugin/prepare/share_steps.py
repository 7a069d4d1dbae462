"""The executor's steps on shared GPUs: what a claim needs, and what the others keep.

The records tell which claims have the GPU: a claim's own record exists before its first act and
after its last. The caller holds the GPU.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping

import structlog

from driver import errors, ids
from driver.devices import mig, model
from driver.devices import mps_files as daemon
from driver.kubeletplugin import ports
from driver.kubeletplugin.plan import claim_mps, mps, steps, time_slicing
from driver.kubeletplugin.prepare import compute_modes, executor
from driver.kubeletplugin.records import checkpoint

_log = structlog.get_logger(__name__)
_DEFAULT = "Default"

Records = Callable[[ids.GpuUuid], tuple[checkpoint.Record, ...]]
"""Returns the records that use a GPU."""


class ShareSteps:
    """Raises NodeFault and DeviceFault.

    `refresh_gpu` re-reads a GPU: changes of earlier steps are not in the records yet.
    """

    def __init__(
        self,
        records: Records,
        slices: ports.TimeSlices,
        modes: ports.ComputeModes,
        daemons: ports.Daemons,
        refresh_gpu: Callable[[ids.GpuUuid], model.Gpu],
    ) -> None:
        self._records = records
        self._slices = slices
        self._modes = modes
        self._daemons = daemons
        self._refresh_gpu = refresh_gpu

    def table(self) -> Mapping[str, executor.Act]:
        """Return acts by name."""
        return {
            time_slicing.SLICE: self._set_slice,
            time_slicing.UNSLICE: self._reset_slice,
            time_slicing.KEEP: _no_op,
            mps.EXCLUSIVE: self._set_exclusive,
            mps.SHARED_AGAIN: self._restore_mode,
            mps.SERVE: self._serve_gpu,
            mps.UNSERVE: self._leave_gpu,
            claim_mps.SERVE: self._serve_claim,
            claim_mps.LEAVE: self._leave_claim,
        }

    def desired_daemon(self, gpu: ids.GpuUuid) -> daemon.Desired | None:
        """Return the daemon that a GPU's claims need; None if none does."""
        return mps.desired_daemon(gpu, self._other_steps(_unowned_step(mps.SERVE, gpu), mps.SERVE))

    def claim_daemon(self, record: checkpoint.Record) -> daemon.Desired | None:
        """Return the claim's own daemon; None if it has none. Raises DeviceFault, NodeFault."""
        serving = (step for step in record.steps if step.act == claim_mps.SERVE)
        return next(map(self._desired_of_claim, serving), None)

    def clear(self, gpu: ids.GpuUuid) -> None:
        """Undo MPS settings of a GPU, unless a recorded claim needs them."""
        self._leave_gpu(_unowned_step(mps.UNSERVE, gpu))
        self._restore_mode(_unowned_step(mps.SHARED_AGAIN, gpu))

    def _set_slice(self, step: steps.Step) -> checkpoint.Facts:
        interval = str(step.arguments[time_slicing.INTERVAL])
        mode = self._allow_processes(step)
        unsupported = self._slices.set_interval(step.gpu, interval)
        if unsupported is None:
            return {time_slicing.INTERVAL: interval, **mode}
        _log.warning("no time slice to set", gpu=step.gpu, said=unsupported.message)
        return {"unsupported": unsupported.message, **mode}

    def _allow_processes(self, step: steps.Step) -> checkpoint.Facts:
        """Allow several processes; return the mode to restore."""
        modes = [
            int(facts.get(time_slicing.MODE, compute_modes.DEFAULT))
            for facts in self._other_facts(step)
        ]
        original = self._modes.set_shared(
            step.gpu, exclusive=False, fallback=max(modes, default=None)
        )
        return (
            {} if original in {None, compute_modes.DEFAULT} else {time_slicing.MODE: str(original)}
        )

    def _reset_slice(self, step: steps.Step) -> checkpoint.Facts:
        if not any(self._other_steps(step, time_slicing.SLICE)):
            self._slices.set_interval(step.gpu, _DEFAULT)
            mode = None if step.rebooted else step.arguments.get(time_slicing.MODE)
            self._modes.restore(step.gpu, None if mode is None else int(mode))
        return {}

    def _set_exclusive(self, step: steps.Step) -> checkpoint.Facts:
        is_shared = any(self._other_steps(step, mps.EXCLUSIVE))
        fallback = compute_modes.DEFAULT if is_shared else None  # of claims of an earlier version
        self._modes.set_shared(step.gpu, exclusive=True, fallback=fallback)
        return {}

    def _restore_mode(self, step: steps.Step) -> checkpoint.Facts:
        if not any(self._other_steps(step, mps.EXCLUSIVE)):
            self._modes.restore(step.gpu, None if step.rebooted else compute_modes.DEFAULT)
        return {}

    def _serve_gpu(self, step: steps.Step) -> checkpoint.Facts:
        desired = self.desired_daemon(
            step.gpu
        )  # the claim's own steps are on record: it may have two
        if desired is not None:
            self._daemons.ensure(desired)
        return {}

    def _leave_gpu(self, step: steps.Step) -> checkpoint.Facts:
        desired = mps.desired_daemon(step.gpu, self._other_steps(step, mps.SERVE))
        if desired is None:
            self._daemons.remove(step.gpu)
        else:
            self._daemons.ensure(desired)
        return {}

    def _serve_claim(self, step: steps.Step) -> checkpoint.Facts:
        desired = self._desired_of_claim(step)
        if claim_mps.step_instance(step) is None:
            self._daemons.ensure(desired)
            return {}
        (uuid,) = desired.devices
        self._try_set_exclusive(ids.MigUuid(uuid), exclusive=True)
        self._daemons.ensure(desired)
        return {"uuid": uuid}

    def _leave_claim(self, step: steps.Step) -> checkpoint.Facts:
        self._daemons.remove(str(step.arguments[mps.CLAIM]))
        ref = claim_mps.step_instance(step)
        with contextlib.suppress(errors.DeviceFault):  # the next claim sets the mode it needs
            if ref is not None and (uuid := self._instance_uuid(ref)) is not None:
                self._try_set_exclusive(uuid, exclusive=False)
        return {}

    def _desired_of_claim(self, step: steps.Step) -> daemon.Desired:
        ref = claim_mps.step_instance(step)
        if ref is None:
            return claim_mps.desired_daemon(step, claim_mps.step_devices(step))
        uuid = self._instance_uuid(ref)
        if uuid is None:
            text = "it is not there any more"
            raise errors.NodeFault("find", f"MIG at {ref.placement} of {ref.gpu}", text)
        return claim_mps.desired_daemon(step, (uuid,))

    def _instance_uuid(self, ref: mig.InstanceRef) -> ids.MigUuid | None:
        """Return the current instance's UUID. Raises DeviceFault."""
        layout = self._refresh_gpu(ref.gpu).mig
        instance = layout.find(ref) if layout else None
        return instance.uuid if instance else None

    def _try_set_exclusive(self, instance: ids.MigUuid, *, exclusive: bool) -> None:
        """Set a MIG device's compute mode, if it has one (NV-10)."""
        try:
            self._modes.set_exclusive(instance, exclusive=exclusive)
        except errors.DeviceFault as fault:
            _log.warning("compute mode left as it is", device=instance, error=str(fault))

    def _other_facts(self, step: steps.Step) -> Iterator[checkpoint.Facts]:
        """Yield facts of the same step of other claims, as far as executed."""
        claim = ids.ClaimUid(str(step.arguments[mps.CLAIM]))
        for record in self._records(step.gpu):
            executed = () if record.uid == claim else zip(record.steps, record.facts, strict=False)
            yield from (
                facts for other, facts in executed if (other.gpu, other.act) == (step.gpu, step.act)
            )

    def _other_steps(self, step: steps.Step, act: str) -> Iterator[steps.Step]:
        """Yield the steps of other claims with that act on the GPU."""
        claim = ids.ClaimUid(str(step.arguments[mps.CLAIM]))
        for record in self._records(step.gpu):
            if record.uid != claim:
                yield from (
                    other for other in record.steps if other.gpu == step.gpu and other.act == act
                )


def _unowned_step(act: str, gpu: ids.GpuUuid) -> steps.Step:
    """Return a step of no claim, so that every claim counts as another."""
    return steps.Step(act, time_slicing.KEEP, gpu, {mps.CLAIM: ""})


def _no_op(_step: steps.Step) -> checkpoint.Facts:
    return {}

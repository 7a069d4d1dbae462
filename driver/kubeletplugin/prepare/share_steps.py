"""The executor's acts on GPUs that several claims have: what one needs, and what the others keep.

The records say who has the GPU: a claim's own stands there before its first act and after its last.
The caller holds the GPU.
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

Records = Callable[[], tuple[checkpoint.Record, ...]]


class ShareSteps:
    """Raises NodeFault and DeviceFault.

    `again` reads a GPU anew: what earlier steps made of it is not in the records yet.
    """

    def __init__(
        self,
        records: Records,
        slices: ports.TimeSlices,
        modes: ports.ComputeModes,
        daemons: ports.Daemons,
        again: Callable[[ids.GpuUuid], model.Gpu],
    ) -> None:
        self._records = records
        self._slices = slices
        self._modes = modes
        self._daemons = daemons
        self._refresh_gpu = again

    def table(self) -> Mapping[str, executor.Act]:
        """Acts by name."""
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
        """The daemon that the claims of a GPU want; None where none of them does."""
        return mps.desired_daemon(gpu, self._other_steps(_unowned_step(mps.SERVE, gpu), mps.SERVE))

    def claim_daemon(self, record: checkpoint.Record) -> daemon.Desired | None:
        """The daemon of the claim's own; None where it has none. Raises DeviceFault, NodeFault."""
        serving = (step for step in record.steps if step.act == claim_mps.SERVE)
        return next(map(self._desired_of_claim, serving), None)

    def clear(self, gpu: ids.GpuUuid) -> None:
        """Take back what MPS did to a GPU, as far as no claim that is recorded needs it."""
        self._leave_gpu(_unowned_step(mps.UNSERVE, gpu))
        self._restore_mode(_unowned_step(mps.SHARED_AGAIN, gpu))

    def _set_slice(self, step: steps.Step) -> checkpoint.Facts:
        interval = str(step.arguments[time_slicing.INTERVAL])
        mode = self._allow_processes(step)
        lacking = self._slices.set_interval(step.gpu, interval)
        if lacking is None:
            return {time_slicing.INTERVAL: interval, **mode}
        _log.warning("no time slice to set", gpu=step.gpu, said=lacking.message)
        return {"unsupported": lacking.message, **mode}

    def _allow_processes(self, step: steps.Step) -> checkpoint.Facts:
        """Let several processes in."""
        told = [
            int(facts.get(time_slicing.MODE, compute_modes.DEFAULT))
            for facts in self._other_facts(step)
        ]
        before = self._modes.set_shared(step.gpu, exclusive=False, known=max(told, default=None))
        return {} if before in {None, compute_modes.DEFAULT} else {time_slicing.MODE: str(before)}

    def _reset_slice(self, step: steps.Step) -> checkpoint.Facts:
        if not any(self._other_steps(step, time_slicing.SLICE)):
            self._slices.set_interval(step.gpu, _DEFAULT)
            told = None if step.rebooted else step.arguments.get(time_slicing.MODE)
            self._modes.restore(step.gpu, None if told is None else int(told))
        return {}

    def _set_exclusive(self, step: steps.Step) -> checkpoint.Facts:
        shared = any(self._other_steps(step, mps.EXCLUSIVE))
        known = compute_modes.DEFAULT if shared else None  # of claims of an earlier version
        self._modes.set_shared(step.gpu, exclusive=True, known=known)
        return {}

    def _restore_mode(self, step: steps.Step) -> checkpoint.Facts:
        if not any(self._other_steps(step, mps.EXCLUSIVE)):
            self._modes.restore(step.gpu, None if step.rebooted else compute_modes.DEFAULT)
        return {}

    def _serve_gpu(self, step: steps.Step) -> checkpoint.Facts:
        wanted = self.desired_daemon(
            step.gpu
        )  # the claim's own steps are on record: it may have two
        if wanted is not None:
            self._daemons.ensure(wanted)
        return {}

    def _leave_gpu(self, step: steps.Step) -> checkpoint.Facts:
        wanted = mps.desired_daemon(step.gpu, self._other_steps(step, mps.SERVE))
        if wanted is None:
            self._daemons.remove(step.gpu)
        else:
            self._daemons.ensure(wanted)
        return {}

    def _serve_claim(self, step: steps.Step) -> checkpoint.Facts:
        wanted = self._desired_of_claim(step)
        if claim_mps.step_instance(step) is None:
            self._daemons.ensure(wanted)
            return {}
        (found,) = wanted.devices
        self._try_set_exclusive(ids.MigUuid(found), exclusive=True)
        self._daemons.ensure(wanted)
        return {"uuid": found}

    def _leave_claim(self, step: steps.Step) -> checkpoint.Facts:
        self._daemons.remove(str(step.arguments[mps.CLAIM]))
        place = claim_mps.step_instance(step)
        with contextlib.suppress(errors.DeviceFault):  # who comes next sets what it needs
            if place is not None and (found := self._instance_uuid(place)) is not None:
                self._try_set_exclusive(found, exclusive=False)
        return {}

    def _desired_of_claim(self, step: steps.Step) -> daemon.Desired:
        place = claim_mps.step_instance(step)
        if place is None:
            return claim_mps.desired_daemon(step, claim_mps.step_devices(step))
        found = self._instance_uuid(place)
        if found is None:
            text = "it is not there any more"
            raise errors.NodeFault("find", f"MIG at {place.placement} of {place.gpu}", text)
        return claim_mps.desired_daemon(step, (found,))

    def _instance_uuid(self, place: mig.InstanceRef) -> ids.MigUuid | None:
        """What lies there now. Raises DeviceFault."""
        partitioned = self._refresh_gpu(place.gpu).mig
        found = partitioned.find(place) if partitioned else None
        return found.uuid if found else None

    def _try_set_exclusive(self, instance: ids.MigUuid, *, exclusive: bool) -> None:
        """With MIG on, the compute mode is a MIG device's, where it has one (NV-10)."""
        try:
            self._modes.set_exclusive(instance, exclusive=exclusive)
        except errors.DeviceFault as fault:
            _log.warning("compute mode left as it is", device=instance, error=str(fault))

    def _other_facts(self, mine: steps.Step) -> Iterator[checkpoint.Facts]:
        """Facts of the same step of other claims, as far as it was carried out."""
        claim = ids.ClaimUid(str(mine.arguments[mps.CLAIM]))
        for record in self._records():
            done = () if record.uid == claim else zip(record.steps, record.facts, strict=False)
            yield from (facts for one, facts in done if (one.gpu, one.act) == (mine.gpu, mine.act))

    def _other_steps(self, mine: steps.Step, act: str) -> Iterator[steps.Step]:
        """The steps of other claims that do the same to the GPU."""
        claim = ids.ClaimUid(str(mine.arguments[mps.CLAIM]))
        for record in self._records():
            if record.uid != claim:
                yield from (one for one in record.steps if one.gpu == mine.gpu and one.act == act)


def _unowned_step(act: str, gpu: ids.GpuUuid) -> steps.Step:
    """A step of no claim, to which every claim is another."""
    return steps.Step(act, time_slicing.KEEP, gpu, {mps.CLAIM: ""})


def _no_op(_step: steps.Step) -> checkpoint.Facts:
    return {}

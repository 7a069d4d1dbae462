"""The executor's acts on GPUs that several claims have: what one needs, and what the others keep.

The records say who has the GPU: a claim's own stands there before its first act and after its last.
The caller holds the GPU.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping

import structlog

from driver import errors, ids
from driver.devices import mig, model
from driver.devices import mps as daemon
from driver.kubeletplugin import checkpoint, compute_modes, executor, ports, steps
from driver.kubeletplugin.sharing import mps, own_mps, time_slicing

_log = structlog.get_logger(__name__)
_DEFAULT = "Default"

Records = Callable[[], tuple[checkpoint.Record, ...]]


class ShareActs:
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
        self._again = again

    def table(self) -> Mapping[str, executor.Act]:
        """Acts by name."""
        return {
            time_slicing.SLICE: self._slice,
            time_slicing.UNSLICE: self._unslice,
            time_slicing.KEEP: _keep,
            mps.EXCLUSIVE: self._exclusive,
            mps.SHARED_AGAIN: self._shared_again,
            mps.SERVE: self._serve,
            mps.UNSERVE: self._leave,
            own_mps.SERVE: self._serve_claim,
            own_mps.LEAVE: self._leave_claim,
        }

    def wanted(self, gpu: ids.GpuUuid) -> daemon.Desired | None:
        """The daemon that the claims of a GPU want; None where none of them does."""
        return mps.wanted(gpu, self._others(_nobodys(mps.SERVE, gpu), mps.SERVE))

    def wanted_by(self, record: checkpoint.Record) -> daemon.Desired | None:
        """The daemon of the claim's own; None where it has none. Raises DeviceFault, NodeFault."""
        serving = (step for step in record.steps if step.act == own_mps.SERVE)
        return next(map(self._own, serving), None)

    def clear(self, gpu: ids.GpuUuid) -> None:
        """Take back what MPS did to a GPU, as far as no claim that is recorded needs it."""
        self._leave(_nobodys(mps.UNSERVE, gpu))
        self._shared_again(_nobodys(mps.SHARED_AGAIN, gpu))

    def _slice(self, step: steps.Step) -> checkpoint.Facts:
        interval = str(step.arguments[time_slicing.INTERVAL])
        mode = self._opened(step)
        lacking = self._slices.set_interval(step.gpu, interval)
        if lacking is None:
            return {time_slicing.INTERVAL: interval, **mode}
        _log.warning("no time slice to set", gpu=step.gpu, said=lacking.words)
        return {"unsupported": lacking.words, **mode}

    def _opened(self, step: steps.Step) -> checkpoint.Facts:
        """Let several processes in."""
        told = [
            int(facts.get(time_slicing.MODE, compute_modes.DEFAULT)) for facts in self._facts(step)
        ]
        before = self._modes.share(step.gpu, exclusive=False, known=max(told, default=None))
        return {} if before in {None, compute_modes.DEFAULT} else {time_slicing.MODE: str(before)}

    def _unslice(self, step: steps.Step) -> checkpoint.Facts:
        if not any(self._others(step, time_slicing.SLICE)):
            self._slices.set_interval(step.gpu, _DEFAULT)
            told = None if step.rebooted else step.arguments.get(time_slicing.MODE)
            self._modes.give_back(step.gpu, None if told is None else int(told))
        return {}

    def _exclusive(self, step: steps.Step) -> checkpoint.Facts:
        shared = any(self._others(step, mps.EXCLUSIVE))
        known = compute_modes.DEFAULT if shared else None  # of claims of an earlier version
        self._modes.share(step.gpu, exclusive=True, known=known)
        return {}

    def _shared_again(self, step: steps.Step) -> checkpoint.Facts:
        if not any(self._others(step, mps.EXCLUSIVE)):
            self._modes.give_back(step.gpu, None if step.rebooted else compute_modes.DEFAULT)
        return {}

    def _serve(self, step: steps.Step) -> checkpoint.Facts:
        wanted = self.wanted(step.gpu)  # the claim's own steps are on record: it may have two
        if wanted is not None:
            self._daemons.want(wanted)
        return {}

    def _leave(self, step: steps.Step) -> checkpoint.Facts:
        wanted = mps.wanted(step.gpu, self._others(step, mps.SERVE))
        if wanted is None:
            self._daemons.forget(step.gpu)
        else:
            self._daemons.want(wanted)
        return {}

    def _serve_claim(self, step: steps.Step) -> checkpoint.Facts:
        wanted = self._own(step)
        if own_mps.place(step) is None:
            self._daemons.want(wanted)
            return {}
        (found,) = wanted.devices
        self._set_if_it_can_be(ids.MigUuid(found), exclusive=True)
        self._daemons.want(wanted)
        return {"uuid": found}

    def _leave_claim(self, step: steps.Step) -> checkpoint.Facts:
        self._daemons.forget(str(step.arguments[mps.CLAIM]))
        place = own_mps.place(step)
        with contextlib.suppress(errors.DeviceFault):  # who comes next sets what it needs
            if place is not None and (found := self._instance(place)) is not None:
                self._set_if_it_can_be(found, exclusive=False)
        return {}

    def _own(self, step: steps.Step) -> daemon.Desired:
        place = own_mps.place(step)
        if place is None:
            return own_mps.wanted(step, own_mps.devices(step))
        found = self._instance(place)
        if found is None:
            text = "it is not there any more"
            raise errors.NodeFault("find", f"MIG at {place.placement} of {place.gpu}", text)
        return own_mps.wanted(step, (found,))

    def _instance(self, place: mig.Place) -> ids.MigUuid | None:
        """What lies there now. Raises DeviceFault."""
        partitioned = self._again(place.gpu).mig
        found = partitioned.at(place) if partitioned else None
        return found.uuid if found else None

    def _set_if_it_can_be(self, instance: ids.MigUuid, *, exclusive: bool) -> None:
        """With MIG on, the compute mode is a MIG device's, where it has one (NV-10)."""
        try:
            self._modes.set_exclusive(instance, exclusive=exclusive)
        except errors.DeviceFault as fault:
            _log.warning("compute mode left as it is", device=instance, error=str(fault))

    def _facts(self, mine: steps.Step) -> Iterator[checkpoint.Facts]:
        """Facts of the same step of other claims, as far as it was carried out."""
        claim = ids.ClaimUid(str(mine.arguments[mps.CLAIM]))
        for record in self._records():
            done = () if record.uid == claim else zip(record.steps, record.facts, strict=False)
            yield from (facts for one, facts in done if (one.gpu, one.act) == (mine.gpu, mine.act))

    def _others(self, mine: steps.Step, act: str) -> Iterator[steps.Step]:
        """The steps of other claims that do the same to the GPU."""
        claim = ids.ClaimUid(str(mine.arguments[mps.CLAIM]))
        for record in self._records():
            if record.uid != claim:
                yield from (one for one in record.steps if one.gpu == mine.gpu and one.act == act)


def _nobodys(act: str, gpu: ids.GpuUuid) -> steps.Step:
    """A step of no claim, to which every claim is another."""
    return steps.Step(act, time_slicing.KEEP, gpu, {mps.CLAIM: ""})


def _keep(_step: steps.Step) -> checkpoint.Facts:
    return {}

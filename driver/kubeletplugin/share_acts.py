"""The executor's acts on GPUs that several claims have: what one needs, and what the others keep.

The records say who has the GPU: a claim's own stands there before its first act and after its last.
The caller holds the GPU.
"""

from collections.abc import Callable, Iterator, Mapping

import structlog

from driver import ids
from driver.devices import mps as daemon
from driver.kubeletplugin import checkpoint, executor, ports, steps
from driver.kubeletplugin.sharing import mps, time_slicing

_log = structlog.get_logger(__name__)
_DEFAULT = "Default"

Records = Callable[[], tuple[checkpoint.Record, ...]]


class ShareActs:
    """Raises NodeFault and DeviceFault."""

    def __init__(
        self,
        records: Records,
        slices: ports.TimeSlices,
        modes: ports.ComputeModes,
        daemons: ports.Daemons,
    ) -> None:
        self._records = records
        self._slices = slices
        self._modes = modes
        self._daemons = daemons

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
        }

    def wanted(self, gpu: ids.GpuUuid) -> daemon.Desired | None:
        """The daemon that the claims of a GPU want; None where none of them does."""
        return mps.wanted(gpu, self._others(_nobodys(mps.SERVE, gpu), mps.SERVE))

    def clear(self, gpu: ids.GpuUuid) -> None:
        """Take back what MPS did to a GPU, as far as no claim that is recorded needs it."""
        self._leave(_nobodys(mps.UNSERVE, gpu))
        self._shared_again(_nobodys(mps.SHARED_AGAIN, gpu))

    def _slice(self, step: steps.Step) -> checkpoint.Facts:
        interval = str(step.arguments[time_slicing.INTERVAL])
        lacking = self._slices.set_interval(step.gpu, interval)
        if lacking is None:
            return {time_slicing.INTERVAL: interval}
        _log.warning("no time slice to set", gpu=step.gpu, said=lacking.words)
        return {"unsupported": lacking.words}

    def _unslice(self, step: steps.Step) -> checkpoint.Facts:
        if not any(self._others(step, time_slicing.SLICE)):
            self._slices.set_interval(step.gpu, _DEFAULT)
        return {}

    def _exclusive(self, step: steps.Step) -> checkpoint.Facts:
        self._modes.set_exclusive(step.gpu, exclusive=True)
        return {}

    def _shared_again(self, step: steps.Step) -> checkpoint.Facts:
        if not any(self._others(step, mps.EXCLUSIVE)):
            self._modes.set_exclusive(step.gpu, exclusive=False)
        return {}

    def _serve(self, step: steps.Step) -> checkpoint.Facts:
        wanted = mps.wanted(step.gpu, (*self._others(step, mps.SERVE), step))
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

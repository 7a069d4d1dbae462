"""Settings that the end of a claim could not take back, as its GPU hung: they are owed.

An Unprepare needs no answer of the GPU: the compute mode or time slice that stays is noted, and
taken back when calls return, before anything else is prepared there.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog

from driver import errors, ids
from driver.kubeletplugin.host import locks
from driver.kubeletplugin.plan import mps, steps, time_slicing
from driver.kubeletplugin.prepare import executor
from driver.kubeletplugin.records import checkpoint
from driver.kubeletplugin.recovery import pending_mig

_log = structlog.get_logger(__name__)
_UNDOING: Final = (mps.SHARED_AGAIN, time_slicing.UNSLICE)


class PendingSettings:
    """Acts of `table`, of which those that take a setting back are put off while a GPU hangs.

    `owed` says for each such act which GPUs it is owed on; they raise NodeFault.
    """

    def __init__(
        self,
        table: Mapping[str, executor.Act],
        owed: Callable[[str], pending_mig.PendingGpus],
        holding: locks.Locks,
        hung: Callable[[ids.GpuUuid], errors.Hung | None],
    ) -> None:
        self._table = table
        self._pending = {act: owed(act) for act in _UNDOING if act in table}
        self._locks = holding
        self._hung = hung

    def table(self) -> Mapping[str, executor.Act]:
        """Acts by name."""
        return {**self._table, **dict.fromkeys(self._pending, self._run_or_defer)}

    def restore(self, gpus: Iterable[ids.GpuUuid]) -> None:
        """Take back what is owed on these GPUs, which the caller holds.

        Raises DeviceFault, NodeFault: they are not to be used yet.
        """
        wanted = set(gpus)
        for act, owed in self._pending.items():
            for gpu in wanted.intersection(owed.list_gpus()):
                self._table[act](steps.Step(act, time_slicing.KEEP, gpu, {mps.CLAIM: ""}))
                owed.remove(gpu)
                _log.info("setting taken back, which an ended claim had left", act=act, gpu=gpu)

    def repair(self) -> tuple[str, ...]:
        """Try each GPU once; names what could not be taken back. Raises NodeFault."""
        problems: list[str] = []
        for gpu in sorted({gpu for owed in self._pending.values() for gpu in owed.list_gpus()}):
            try:
                with self._locks.gpus([gpu]):
                    self.restore([gpu])
            except errors.RationError as e:
                problems.append(f"settings of {gpu}, left by an ended claim: {e}")
        return tuple(problems)

    def _run_or_defer(self, step: steps.Step) -> checkpoint.Facts:
        try:
            return self._table[step.act](step)
        except (errors.DeviceFault, errors.NodeFault) as fault:
            if self._hung(step.gpu) is None:
                raise
            _log.warning("setting left for later", act=step.act, gpu=step.gpu, error=str(fault))
            self._pending[step.act].add(step.gpu)
            return {}

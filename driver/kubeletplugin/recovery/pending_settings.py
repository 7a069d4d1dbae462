"""Settings that the end of a claim could not restore because its GPU hung: they are pending.

An Unprepare needs no answer of the GPU: the remaining compute mode or time slice is recorded, and
restored when calls return, before the GPU is prepared again.
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
    """Acts of `table`, with those that restore a setting deferred while a GPU hangs.

    `make_pending` returns the pending GPUs of each such act; they raise NodeFault.
    """

    def __init__(
        self,
        table: Mapping[str, executor.Act],
        make_pending: Callable[[str], pending_mig.PendingGpus],
        locks: locks.Locks,
        hung: Callable[[ids.GpuUuid], errors.Hung | None],
    ) -> None:
        self._table = table
        self._pending = {act: make_pending(act) for act in _UNDOING if act in table}
        self._locks = locks
        self._hung = hung

    def table(self) -> Mapping[str, executor.Act]:
        """Return acts by name."""
        return {**self._table, **dict.fromkeys(self._pending, self._run_or_defer)}

    def restore(self, gpus: Iterable[ids.GpuUuid]) -> None:
        """Restore pending settings of these GPUs, which the caller holds.

        Raises DeviceFault, NodeFault: they must not be used yet.
        """
        requested = set(gpus)
        for act, pending in self._pending.items():
            for gpu in requested.intersection(pending.list_gpus()):
                self._table[act](steps.Step(act, time_slicing.KEEP, gpu, {mps.CLAIM: ""}))
                pending.remove(gpu)
                _log.info("setting taken back, which an ended claim had left", act=act, gpu=gpu)

    def repair(self) -> tuple[str, ...]:
        """Try each GPU once; return what could not be restored. Raises NodeFault."""
        problems: list[str] = []
        for gpu in sorted(
            {gpu for pending in self._pending.values() for gpu in pending.list_gpus()}
        ):
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

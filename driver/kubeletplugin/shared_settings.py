"""Makes the MPS daemons that are wanted agree with the records, at start and every minute.

Compute modes and time slices need no such look: a record is removed only after they were put back.
A daemon can be lost all the same, with its desired file; and one stays when the record of its last
claim was damaged, and the claim unprepared without it.
"""

from collections.abc import Callable, Iterator
from typing import Final

import structlog

from driver import errors, ids
from driver.kubeletplugin import checkpoint, locks, ports, share_acts
from driver.kubeletplugin.sharing import mps

_log = structlog.get_logger(__name__)
_OURS: Final = "GPU-"
"""Daemons of shares are named after their GPU; one of another name was wanted by somebody else."""

Unaccounted = Callable[[], tuple[ids.ClaimUid, ...]]
"""Claims that may have containers, and whose record is damaged. Raises NodeFault."""


class SharedSettings:
    """Used by one thread at a time."""

    def __init__(
        self,
        records: share_acts.Records,
        acts: share_acts.ShareActs,
        daemons: ports.Daemons,
        holding: locks.Locks,
        unaccounted: Unaccounted,
    ) -> None:
        self._records = records
        self._acts = acts
        self._daemons = daemons
        self._locks = holding
        self._unaccounted = unaccounted

    def mend(self) -> tuple[str, ...]:
        """Have the daemons that records want, and no other; names what could not be done.

        A daemon is not waited for: MpsWatch tells its claims if it fails. Raises NodeFault.
        """
        wanted = {gpu for record in self._records() for gpu in _served(record)}
        there = {ids.GpuUuid(key) for key in self._daemons.wanted() if key.startswith(_OURS)}
        problems: list[str] = []
        for gpu in sorted(wanted ^ there):
            try:
                with self._locks.gpus([gpu]):
                    self._mend(gpu)
            except errors.RationError as e:
                problems.append(f"MPS daemon {gpu}: {e}")
        return tuple(problems)

    def _mend(self, gpu: ids.GpuUuid) -> None:
        """With the GPU in hand both are read again: a claim may have come or gone meanwhile."""
        wanted = self._acts.wanted(gpu)
        there = gpu in self._daemons.wanted()
        if wanted is not None and not there:
            _log.warning("MPS daemon was not asked for any more, and is again", gpu=gpu)
            self._daemons.put(wanted)
        # Containers of a claim whose record is damaged may be clients of any daemon.
        elif wanted is None and there and not self._unaccounted():
            _log.warning("MPS daemon without a claim ends", gpu=gpu)
            self._acts.clear(gpu)


def _served(record: checkpoint.Record) -> Iterator[ids.GpuUuid]:
    return (step.gpu for step in record.steps if step.act == mps.SERVE)

"""Makes the MPS daemons that are wanted agree with the records, at start and every minute.

Compute modes and time slices need no such look: a record is removed only after they were put back.
A daemon can be lost all the same, with its desired file; and one stays when the record of its last
claim was damaged, and the claim unprepared without it.
"""

import functools
import re
from collections.abc import Callable, Iterator
from typing import Final

import structlog

from driver import errors, ids
from driver.devices import mps_files as daemons
from driver.kubeletplugin import ports
from driver.kubeletplugin.host import locks
from driver.kubeletplugin.plan import claim_mps, mps
from driver.kubeletplugin.prepare import share_steps
from driver.kubeletplugin.records import checkpoint

_log = structlog.get_logger(__name__)
_SHARED: Final = "GPU-"
_OWN: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Daemons of shares are named after their GPU, a claim's own after the claim, by its UID. One of
another name was wanted by somebody else.
"""

Unaccounted = Callable[[], tuple[ids.ClaimUid, ...]]
"""Claims that may have containers, and whose record is damaged. Raises NodeFault."""


class MpsReconciler:
    """Used by one thread at a time."""

    def __init__(
        self,
        records: share_steps.Records,
        acts: share_steps.ShareSteps,
        daemons: ports.Daemons,
        holding: locks.Locks,
        unaccounted: Unaccounted,
    ) -> None:
        self._records = records
        self._steps = acts
        self._daemons = daemons
        self._locks = holding
        self._unaccounted = unaccounted

    def repair(self) -> tuple[str, ...]:
        """Have the daemons that records want, and no other; names what could not be done.

        A daemon is not waited for: MpsWatch tells its claims if it fails. Raises NodeFault.
        """
        there = self._daemons.desired_keys()
        records = self._records()
        shared = {gpu for record in records for gpu in _served_gpus(record)}
        shared ^= {ids.GpuUuid(key) for key in there if key.startswith(_SHARED)}
        own = {record.uid for record in records if _has_own_daemon(record)}
        own ^= {ids.ClaimUid(key) for key in there if _OWN.fullmatch(key)}
        mending: list[tuple[str, Callable[[], None]]] = [
            *((gpu, functools.partial(self._repair_shared, gpu)) for gpu in sorted(shared)),
            *((uid, functools.partial(self._repair_own, uid)) for uid in sorted(own)),
        ]
        problems: list[str] = []
        for key, mend in mending:
            try:
                mend()
            except errors.RationError as e:
                problems.append(f"MPS daemon {key}: {e}")
        return tuple(problems)

    def _repair_shared(self, gpu: ids.GpuUuid) -> None:
        """With the GPU in hand both are read again: a claim may have come or gone meanwhile."""
        with self._locks.gpus([gpu]):
            wanted = self._steps.desired_daemon(gpu)
            there = gpu in self._daemons.desired_keys()
            if wanted is not None and not there:
                self._request_again(wanted)
            # Containers of a claim whose record is damaged may be clients of any daemon.
            elif wanted is None and there and not self._unaccounted():
                _log.warning("MPS daemon without a claim ends", gpu=gpu)
                self._steps.clear(gpu)

    def _repair_own(self, uid: ids.ClaimUid) -> None:
        """As `_mend`; what is only half prepared, or half undone, is the claim's next call's."""
        with self._locks.claim(uid):
            record = next((one for one in self._records() if one.uid == uid), None)
            there = uid in self._daemons.desired_keys()
            if record is None and there and not self._unaccounted():
                self._end_daemon(uid)
            elif record is not None and record.state is checkpoint.State.COMPLETED and not there:
                with self._locks.gpus(record.gpus):
                    self._request_again(self._steps.claim_daemon(record))

    def _request_again(self, wanted: daemons.Desired | None) -> None:
        if wanted is not None:
            _log.warning("MPS daemon was not asked for any more, and is again", daemon=wanted.key)
            self._daemons.request(wanted)

    def _end_daemon(self, uid: ids.ClaimUid) -> None:
        """A MIG device keeps its mode: it goes with it, or who comes next sets it."""
        _log.warning("MPS daemon without its claim ends", claim=uid)
        wanted = self._daemons.read_desired(uid)
        self._daemons.remove(uid)
        for one in wanted.devices if wanted else ():
            if one.startswith(_SHARED):
                with self._locks.gpus([ids.GpuUuid(one)]):
                    self._steps.clear(ids.GpuUuid(one))


def _served_gpus(record: checkpoint.Record) -> Iterator[ids.GpuUuid]:
    return (step.gpu for step in record.steps if step.act == mps.SERVE)


def _has_own_daemon(record: checkpoint.Record) -> bool:
    done = record.state is checkpoint.State.COMPLETED
    return done and any(step.act == claim_mps.SERVE for step in record.steps)

"""Reconciles desired MPS daemons with the records, at start and every minute.

Compute modes and time slices need no such check: a record is removed only after they were restored.
A daemon's desired file can be lost; and one stays if the record of its last claim was damaged, and
the claim unprepared without it.
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
"""Daemons of shares are named after their GPU, a claim's own after the claim, by UID. A daemon of
another name is foreign.
"""

Unaccounted = Callable[[], tuple[ids.ClaimUid, ...]]
"""Returns claims that may have containers, and whose record is damaged. Raises NodeFault."""


class MpsReconciler:
    """Used by one thread at a time."""

    def __init__(
        self,
        records: Callable[[], tuple[checkpoint.Record, ...]],
        steps: share_steps.ShareSteps,
        daemons: ports.Daemons,
        locks: locks.Locks,
        unaccounted: Unaccounted,
    ) -> None:
        self._records = records
        self._steps = steps
        self._daemons = daemons
        self._locks = locks
        self._unaccounted = unaccounted

    def repair(self) -> tuple[str, ...]:
        """Request the daemons that records need, remove others; return what failed.

        Does not wait for daemons: MpsWatch reports failures to their claims. Raises NodeFault.
        """
        desired = self._daemons.desired_keys()
        records = self._records()
        shared = {gpu for record in records for gpu in _served_gpus(record)}
        shared ^= {ids.GpuUuid(key) for key in desired if key.startswith(_SHARED)}
        own_uids = {record.uid for record in records if _has_own_daemon(record)}
        own_uids ^= {ids.ClaimUid(key) for key in desired if _OWN.fullmatch(key)}
        repairs: list[tuple[str, Callable[[], None]]] = [
            *((gpu, functools.partial(self._repair_shared, gpu)) for gpu in sorted(shared)),
            *((uid, functools.partial(self._repair_own, uid)) for uid in sorted(own_uids)),
        ]
        problems: list[str] = []
        for key, repair in repairs:
            try:
                repair()
            except errors.RationError as e:
                problems.append(f"MPS daemon {key}: {e}")
        return tuple(problems)

    def _repair_shared(self, gpu: ids.GpuUuid) -> None:
        """Re-read both with the GPU locked: a claim may have come or gone meanwhile."""
        with self._locks.gpus([gpu]):
            desired = self._steps.desired_daemon(gpu)
            is_desired = gpu in self._daemons.desired_keys()
            if desired is not None and not is_desired:
                self._request_again(desired)
            # Containers of a claim with a damaged record may be clients of any daemon.
            elif desired is None and is_desired and not self._unaccounted():
                _log.warning("MPS daemon without a claim ends", gpu=gpu)
                self._steps.clear(gpu)

    def _repair_own(self, uid: ids.ClaimUid) -> None:
        """Same as `_repair_shared`; a half-prepared record is left to the claim's next call."""
        with self._locks.claim(uid):
            record = next((item for item in self._records() if item.uid == uid), None)
            is_desired = uid in self._daemons.desired_keys()
            if record is None and is_desired and not self._unaccounted():
                self._end_daemon(uid)
            elif (
                record is not None and record.state is checkpoint.State.COMPLETED and not is_desired
            ):
                with self._locks.gpus(record.gpus):
                    self._request_again(self._steps.claim_daemon(record))

    def _request_again(self, desired: daemons.Desired | None) -> None:
        if desired is not None:
            _log.warning("MPS daemon was not asked for any more, and is again", daemon=desired.key)
            self._daemons.request(desired)

    def _end_daemon(self, uid: ids.ClaimUid) -> None:
        """End a daemon; a MIG device's mode stays: it goes with it, or the next claim sets it."""
        _log.warning("MPS daemon without its claim ends", claim=uid)
        desired = self._daemons.read_desired(uid)
        self._daemons.remove(uid)
        for device in desired.devices if desired else ():
            if device.startswith(_SHARED):
                with self._locks.gpus([ids.GpuUuid(device)]):
                    self._steps.clear(ids.GpuUuid(device))


def _served_gpus(record: checkpoint.Record) -> Iterator[ids.GpuUuid]:
    return (step.gpu for step in record.steps if step.act == mps.SERVE)


def _has_own_daemon(record: checkpoint.Record) -> bool:
    done = record.state is checkpoint.State.COMPLETED
    return done and any(step.act == claim_mps.SERVE for step in record.steps)

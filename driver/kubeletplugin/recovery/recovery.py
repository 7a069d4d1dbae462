"""Recovers the previous process's state, before the kubelet's calls are served.

It may be repeated: if the NVIDIA driver comes up late, for the specs that could not be written
then. Later it repairs CDI specs that were removed, or that are of a replaced driver or toolkit.
"""

from dataclasses import dataclass, field

import structlog

from driver import errors, ids
from driver.kubeletplugin.host import locks
from driver.kubeletplugin.prepare import executor
from driver.kubeletplugin.records import checkpoint

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class RecoveryReport:
    """Outcome of each claim.

    `unchanged` was as recorded, `restored` was repaired (its CDI spec or its MIG instance was
    missing, or the machine has rebooted), `rolled_back` was half done, `orphans` had a CDI spec or
    a temporary file but no record, `damaged` has an unreadable record and keeps its CDI spec until
    it is unprepared, `failed` is left as it was, with the reason.
    """

    unchanged: list[ids.ClaimUid] = field(default_factory=list)
    restored: list[ids.ClaimUid] = field(default_factory=list)
    rolled_back: list[ids.ClaimUid] = field(default_factory=list)
    orphans: list[ids.ClaimUid] = field(default_factory=list)
    damaged: list[ids.ClaimUid] = field(default_factory=list)
    failed: dict[ids.ClaimUid, str] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Return whether records, CDI specs and hardware now agree."""
        return not self.failed


def recover(executor: executor.Executor, locks: locks.Locks) -> RecoveryReport:
    """Make records, CDI specs and hardware agree.

    Raises NodeFault if folders cannot be read, or a record is too new: its newer plugin may still
    serve, and the kubelet must not use this one.
    """
    report = RecoveryReport()
    # Specs are listed first: a spec written meanwhile by another plugin has a record by then.
    uids = set(executor.specs.uids()) | set(executor.records.uids())
    for uid in sorted(uids):
        try:
            with locks.claim(uid):
                _recover_claim(uid, executor, locks, report)
        except checkpoint.NewerSchema:
            raise
        except errors.RationError as problem:
            report.failed[uid] = str(problem)
    log.info(
        "recovered",
        kept=len(report.unchanged),
        restored=report.restored,
        rolled_back=report.rolled_back,
        orphans=report.orphans,
        damaged=report.damaged,
        failed=report.failed,
    )
    return report


def restore_specs(executor: executor.Executor, locks: locks.Locks) -> tuple[str, ...]:
    """Restore the CDI specs of prepared claims; return what could not be.

    A container that restarts needs its spec, and the kubelet does not call before. Raises NodeFault
    if the records cannot be read.
    """
    problems: list[str] = []
    for record in executor.records.list_records():
        try:
            _check_spec(record, executor, locks)
        except errors.RationError as e:
            problems.append(f"CDI spec of claim {record.uid}: {e}")
    return tuple(problems)


def _check_spec(record: checkpoint.Record, executor: executor.Executor, locks: locks.Locks) -> None:
    specs = executor.specs
    is_current = specs.exists(record.uid) and specs.is_current(record.uid)
    if _is_prepared(record, executor) and not is_current:
        with locks.claim(record.uid), locks.gpus(record.gpus):
            _restore_spec(record.uid, executor)


def _is_prepared(record: checkpoint.Record, executor: executor.Executor) -> bool:
    """Return whether it is completed in this boot; `recover` or its next call handles others."""
    return record.state is checkpoint.State.COMPLETED and executor.records.is_current_boot(record)


def _restore_spec(uid: ids.ClaimUid, executor: executor.Executor) -> None:
    record = executor.records.read(uid)
    if record is None or not _is_prepared(record, executor):
        return
    if not executor.specs.exists(uid):
        executor.restore(record)
        log.warning("a CDI spec was gone, and is back", claim_uid=uid)
    elif executor.specs.refresh(record):
        log.warning("a CDI spec was of another driver or toolkit, and is renewed", claim_uid=uid)


def _recover_claim(
    uid: ids.ClaimUid, executor: executor.Executor, locks: locks.Locks, report: RecoveryReport
) -> None:
    record = executor.records.read(uid)
    if record is None:
        _recover_unrecorded(uid, executor, report)
        return
    with locks.gpus(record.gpus):
        record = executor.records.read(uid)
        if record is None:
            _recover_unrecorded(uid, executor, report)
            return
        if record.state is checkpoint.State.STARTED:
            executor.undo(record)
            report.rolled_back.append(uid)
            return
        was_in_place = executor.is_in_place(record)
        is_unchanged = executor.restore(record) is record and was_in_place
        (report.unchanged if is_unchanged else report.restored).append(uid)


def _recover_unrecorded(
    uid: ids.ClaimUid, executor: executor.Executor, report: RecoveryReport
) -> None:
    if uid in executor.records.damaged_uids():
        report.damaged.append(uid)
        return
    executor.specs.remove(uid)
    executor.records.remove(uid)
    report.orphans.append(uid)

"""What a new process does with what the last one left, before it listens to the kubelet.

It may be repeated: when the NVIDIA driver comes up only later, the specs it could not write then.
And what it looks for from then on: CDI specs that somebody removed, or that are of a driver or
toolkit that was replaced.
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
    """What became of each claim that was found.

    `kept` stood as recorded, `restored` was made true again (its CDI spec or its MIG instance was
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
        """Whether records, CDI specs and hardware now agree."""
        return not self.failed


def recover(acting: executor.Executor, holding: locks.Locks) -> RecoveryReport:
    """Make records, CDI specs and hardware agree.

    Raises NodeFault when folders cannot be read, or a record is too new: whoever wrote it may serve
    on, and the kubelet is to ask nobody else.
    """
    report = RecoveryReport()
    # Specs are listed first: a spec made meanwhile by another plugin has a record by then.
    with_traces = set(acting.specs.uids()) | set(acting.records.uids())
    for uid in sorted(with_traces):
        try:
            with holding.claim(uid):
                _recover_claim(uid, acting, holding, report)
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


def restore_specs(acting: executor.Executor, holding: locks.Locks) -> tuple[str, ...]:
    """Have the CDI specs of all claims that are prepared as they should be; names what is not.

    A container that is started again needs its spec, and the kubelet does not ask us before.
    Raises NodeFault when the records cannot be read.
    """
    problems: list[str] = []
    for record in acting.records.list_records():
        try:
            _check_spec(record, acting, holding)
        except errors.RationError as e:
            problems.append(f"CDI spec of claim {record.uid}: {e}")
    return tuple(problems)


def _check_spec(record: checkpoint.Record, acting: executor.Executor, holding: locks.Locks) -> None:
    specs = acting.specs
    well = specs.exists(record.uid) and specs.is_current(record.uid)
    if _is_prepared(record, acting) and not well:
        with holding.claim(record.uid), holding.gpus(record.gpus):
            _restore_spec(record.uid, acting)


def _is_prepared(record: checkpoint.Record, acting: executor.Executor) -> bool:
    """One of an earlier boot is for `recover`, and one half done for its claim's next call."""
    return record.state is checkpoint.State.COMPLETED and acting.records.is_current_boot(record)


def _restore_spec(uid: ids.ClaimUid, acting: executor.Executor) -> None:
    record = acting.records.read(uid)
    if record is None or not _is_prepared(record, acting):
        return
    if not acting.specs.exists(uid):
        acting.restore(record)
        log.warning("a CDI spec was gone, and is back", claim_uid=uid)
    elif acting.specs.refresh(record):
        log.warning("a CDI spec was of another driver or toolkit, and is renewed", claim_uid=uid)


def _recover_claim(
    uid: ids.ClaimUid, acting: executor.Executor, holding: locks.Locks, report: RecoveryReport
) -> None:
    record = acting.records.read(uid)
    if record is None:
        _recover_unrecorded(uid, acting, report)
        return
    with holding.gpus(record.gpus):
        record = acting.records.read(uid)
        if record is None:
            _recover_unrecorded(uid, acting, report)
            return
        if record.state is checkpoint.State.STARTED:
            acting.undo(record)
            report.rolled_back.append(uid)
            return
        was_in_place = acting.is_in_place(record)
        kept = acting.restore(record) is record and was_in_place
        (report.unchanged if kept else report.restored).append(uid)


def _recover_unrecorded(
    uid: ids.ClaimUid, acting: executor.Executor, report: RecoveryReport
) -> None:
    if uid in acting.records.damaged_uids():
        report.damaged.append(uid)
        return
    acting.specs.remove(uid)
    acting.records.remove(uid)
    report.orphans.append(uid)

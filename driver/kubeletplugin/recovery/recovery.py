"""Recovers the previous process's state, before the kubelet's calls are served.

It may be repeated: if the NVIDIA driver comes up late, for the specs that could not be written
then. Later it repairs CDI specs that were removed, or that are of a replaced driver or toolkit.
"""

from dataclasses import dataclass, field

import structlog

from driver import errors, ids
from driver.kubeletplugin.cdi import spec_writer
from driver.kubeletplugin.host import locks as gpu_locks
from driver.kubeletplugin.prepare import executor as claim_executor
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


class Recovery:
    """Makes records, CDI specs and hardware of claims agree."""

    def __init__(
        self,
        records: checkpoint.Checkpoint,
        specs: spec_writer.CdiSpecWriter,
        executor: claim_executor.Executor,
        locks: gpu_locks.Locks,
    ) -> None:
        self._records = records
        self._specs = specs
        self._executor = executor
        self._locks = locks

    def recover(self) -> RecoveryReport:
        """Make records, CDI specs and hardware agree.

        Raises NodeFault if folders cannot be read, or a record is too new: its newer plugin may
        still serve, and the kubelet must not use this one.
        """
        report = RecoveryReport()
        # Specs are listed first: a spec written meanwhile by another plugin has a record by then.
        uids = set(self._specs.uids()) | set(self._records.uids())
        for uid in sorted(uids):
            try:
                with self._locks.claim(uid):
                    self._recover_claim(uid, report)
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

    def restore_specs(self) -> tuple[str, ...]:
        """Restore the CDI specs of prepared claims; return what could not be.

        A container that restarts needs its spec, and the kubelet does not call before. Raises
        NodeFault if the records cannot be read.
        """
        problems: list[str] = []
        for record in self._records.list_records():
            try:
                self._check_spec(record)
            except errors.RationError as e:
                problems.append(f"CDI spec of claim {record.uid}: {e}")
        return tuple(problems)

    def _check_spec(self, record: checkpoint.Record) -> None:
        specs = self._specs
        is_current = specs.exists(record.uid) and specs.is_current(record.uid)
        if self._is_prepared(record) and not is_current:
            with self._locks.claim(record.uid), self._locks.gpus(record.gpus):
                self._restore_spec(record.uid)

    def _is_prepared(self, record: checkpoint.Record) -> bool:
        """Return whether it is completed in this boot; `recover` or a next call handles others."""
        return record.state is checkpoint.State.COMPLETED and self._records.is_current_boot(record)

    def _restore_spec(self, uid: ids.ClaimUid) -> None:
        record = self._records.read(uid)
        if record is None or not self._is_prepared(record):
            return
        if not self._specs.exists(uid):
            self._executor.restore(record)
            log.warning("a CDI spec was gone, and is back", claim_uid=uid)
        elif self._specs.refresh(record):
            log.warning(
                "a CDI spec was of another driver or toolkit, and is renewed", claim_uid=uid
            )

    def _recover_claim(self, uid: ids.ClaimUid, report: RecoveryReport) -> None:
        record = self._records.read(uid)
        if record is None:
            self._recover_unrecorded(uid, report)
            return
        with self._locks.gpus(record.gpus):
            record = self._records.read(uid)
            if record is None:
                self._recover_unrecorded(uid, report)
                return
            if record.state is checkpoint.State.STARTED:
                self._executor.undo(record)
                report.rolled_back.append(uid)
                return
            was_in_place = self._executor.is_in_place(record)
            is_unchanged = self._executor.restore(record) is record and was_in_place
            (report.unchanged if is_unchanged else report.restored).append(uid)

    def _recover_unrecorded(self, uid: ids.ClaimUid, report: RecoveryReport) -> None:
        if uid in self._records.damaged_uids():
            report.damaged.append(uid)
            return
        self._specs.remove(uid)
        self._records.remove(uid)
        report.orphans.append(uid)

"""Executes a plan, and undoes it: record, steps, CDI, record (D8)."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.cdi import spec_writer
from driver.kubeletplugin.plan import planner, steps
from driver.kubeletplugin.records import checkpoint
from driver.runtime.files import failpoints

Act = Callable[[steps.Step], checkpoint.Facts]
"""Runs one step and returns its facts. Raises RationError: after Unchanged there is nothing of the
step to undo, after any other perhaps a part of it.
"""
NO_ACTS: Final[Mapping[str, Act]] = {}
"""Whole GPUs need none."""


Settle = Callable[[Iterable[ids.GpuUuid]], None]
"""Restores settings that earlier claims left on GPUs. Raises DeviceFault, NodeFault."""


def _no_settle(_gpus: Iterable[ids.GpuUuid]) -> None:
    """Settle nothing."""


class Abandoned(errors.RationError):
    """The caller has gone; what was begun was undone."""


class Executor:
    """Acts on one claim at a time; the caller holds its GPUs. Raises RationError."""

    def __init__(
        self,
        records: checkpoint.Checkpoint,
        specs: spec_writer.CdiSpecWriter,
        acts: Mapping[str, Act] = NO_ACTS,
        observer: failpoints.Observer = failpoints.NO_OBSERVER,
        settle: Settle = _no_settle,
    ) -> None:
        self._settle = settle
        self._records = records
        self._specs = specs
        self._acts = acts
        self._watch = observer

    def carry_out(
        self, claim: ports.ClaimRef, plan: planner.Plan, cancelled: ports.Cancelled
    ) -> checkpoint.Record:
        """Make the claim ready. If it fails, nothing of it is left."""
        _check_cancelled(cancelled)
        self._settle(device.gpu for device in plan.devices)
        write = self._records.write_started if plan.steps else self._records.write_stepless
        record = write(claim, plan)
        facts: list[checkpoint.Facts] = []
        try:
            return self._execute(record, facts, cancelled)
        except errors.RationError as problem:
            started_record = _started_steps(record, facts, problem)
            # A step that cannot be undone now stays recorded as started: the next call undoes it.
            with contextlib.suppress(errors.RationError):
                if started_record != record:
                    self._records.write_begun(started_record)
                self.undo(started_record)
            raise

    def is_in_place(self, record: checkpoint.Record) -> bool:
        """Return whether a completed record is in place, as far as files tell."""
        return self._records.is_current_boot(record) and self._specs.exists(record.uid)

    def restore(self, record: checkpoint.Record) -> checkpoint.Record:
        """Restore what a completed record says; the caller holds its GPUs.

        In the boot of its execution the CDI spec or a MIG instance can be missing. After another
        boot hardware settings are gone and device numbers may differ: everything is done anew.
        """
        is_there = self._specs.instances_exist(record)
        if not (is_there and self._records.is_current_boot(record)):
            self._settle(record.gpus)
            return self._redo(record)
        if not self._specs.exists(record.uid):
            self._specs.write(record)
        return record

    def unaccounted_uids(self) -> tuple[ids.ClaimUid, ...]:
        """Return the claims with a CDI spec whose record is damaged, and not rewritten since.

        Their containers may run. The claims' changes to GPUs are not known.
        """
        return tuple(
            uid
            for uid in self._records.damaged_uids()
            if self._specs.exists(uid) and self._records.read(uid) is None
        )

    def unaccounted_gpus(self) -> dict[ids.ClaimUid, tuple[ids.GpuUuid, ...]]:
        """Return the GPUs of claims with a damaged record, by their CDI specs."""
        return {uid: self._specs.claim_gpus(uid) for uid in self.unaccounted_uids()}

    def undo(self, record: checkpoint.Record) -> None:
        """Undo everything of the claim, done or half done; its record is removed last.

        From the first step on the record is no longer completed: if the undo stops half way, no
        response may be built from it.
        """
        if record.steps and record.state is checkpoint.State.COMPLETED:
            record = self._records.rewrite(
                dataclasses.replace(record, state=checkpoint.State.STARTED)
            )
        self._undo_steps(record)
        self._specs.remove(record.uid)
        self._records.remove(record.uid)

    def _execute(
        self,
        record: checkpoint.Record,
        facts: list[checkpoint.Facts],
        cancelled: ports.Cancelled,
    ) -> checkpoint.Record:
        """Run steps, CDI, record; `facts` grows by one per step.

        A record without steps is completed before the CDI spec: nothing else can be left of it, and
        a missing spec is written by the next call, or at the next start.
        """
        for step in record.steps:
            _check_cancelled(cancelled)
            facts.append(self._run_step(step))
        _check_cancelled(cancelled)
        self._specs.write(dataclasses.replace(record, facts=tuple(facts)))
        _check_cancelled(cancelled)
        if record.state is checkpoint.State.COMPLETED and self._records.is_current_boot(record):
            return record
        return self._records.write_completed(record, facts)

    def _redo(self, record: checkpoint.Record) -> checkpoint.Record:
        """Redo a completed record; on failure it stays as it was, for the next time."""
        self._specs.remove(record.uid)
        if not record.steps:
            return self._execute(record, [], _never)
        self._undo_steps(record)
        started = self._records.write_begun(dataclasses.replace(record, facts=()))
        facts: list[checkpoint.Facts] = []
        try:
            return self._execute(started, facts, _never)
        except errors.RationError as problem:
            with contextlib.suppress(errors.RationError):
                self._undo_steps(_started_steps(started, facts, problem))
                self._specs.remove(record.uid)
                self._records.rewrite(record)
            raise

    def _undo_steps(self, record: checkpoint.Record) -> None:
        rebooted = not self._records.is_current_boot(record)
        for index, step in reversed(list(enumerate(record.steps))):
            facts = record.facts[index] if index < len(record.facts) else steps.NO_ARGUMENTS
            self._run_step(step.inverse(facts, rebooted=rebooted))

    def _run_step(self, step: steps.Step) -> checkpoint.Facts:
        act = self._acts.get(step.act)
        if act is None:
            raise errors.NodeFault("carry out", step.act, f"expected one of {sorted(self._acts)}")
        facts = act(step)
        self._watch.on_point(f"step done: {step.act}")
        return facts


def _started_steps(
    record: checkpoint.Record, facts: list[checkpoint.Facts], problem: errors.RationError
) -> checkpoint.Record:
    """Return the record, narrowed to the steps that may have left something.

    A step that never began must not be undone: another's instance may be there.
    """
    is_clean = isinstance(problem, Abandoned | errors.Unchanged)
    count = len(facts) + (0 if is_clean else 1)
    return dataclasses.replace(record, steps=record.steps[:count], facts=tuple(facts))


def _check_cancelled(cancelled: ports.Cancelled) -> None:
    if cancelled():
        raise Abandoned("the caller has gone; nothing was kept")


def _never() -> bool:
    return False

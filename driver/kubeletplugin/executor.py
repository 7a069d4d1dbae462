"""Carrying a plan out, and taking it back: record, steps, CDI, record (D8)."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Final

from driver import errors
from driver.files import observer
from driver.kubeletplugin import checkpoint, injection, plan, ports, steps

Act = Callable[[steps.Step], checkpoint.Facts]
"""Does one step and says what that revealed. Raises RationError."""
NO_ACTS: Final[Mapping[str, Act]] = {}
"""Whole GPUs need none."""


class Abandoned(errors.RationError):
    """The caller has gone: what was begun was taken back."""


class Executor:
    """Acts on one claim at a time; the caller holds its GPUs. Raises RationError."""

    def __init__(
        self,
        records: checkpoint.Checkpoint,
        specs: injection.Injection,
        acts: Mapping[str, Act] = NO_ACTS,
        watch: observer.Observer = observer.NOBODY,
    ) -> None:
        self.records = records
        self.specs = specs
        self._acts = acts
        self._watch = watch

    def carry_out(
        self, claim: ports.ClaimRef, intent: plan.Plan, cancelled: ports.Cancelled
    ) -> checkpoint.Record:
        """Make the claim ready. On any failure of ours nothing of it is left."""
        _still_there(cancelled)
        record = self.records.started(claim, intent)
        try:
            facts = tuple(self._do(step, cancelled) for step in record.steps)
            _still_there(cancelled)
            self.specs.write(record)
            _still_there(cancelled)
            return self.records.completed(record, facts)
        except errors.RationError:
            # What cannot be taken back now stays recorded as started: the next call does it.
            with contextlib.suppress(errors.RationError):
                self.undo(record)
            raise

    def is_in_place(self, record: checkpoint.Record) -> bool:
        """Whether all of a completed record still stands."""
        return self.records.is_of_this_boot(record) and self.specs.exists(record.uid)

    def restore(self, record: checkpoint.Record) -> checkpoint.Record:
        """Make true again what a completed record says.

        In the boot it was carried out in only the CDI spec can be missing. After another boot
        hardware settings are gone and device numbers may be others: everything is done anew.
        """
        if self.is_in_place(record):
            return record
        if self.records.is_of_this_boot(record):
            self.specs.write(record)
            return record
        self.specs.remove(record.uid)
        facts = tuple(self._do(step, _never) for step in record.steps)
        self.specs.write(record)
        return self.records.completed(record, facts)

    def undo(self, record: checkpoint.Record) -> None:
        """Take back everything of the claim, done or half done; its record goes last."""
        for step in reversed(record.steps):
            self._do(step.inverse(), _never)
        self.specs.remove(record.uid)
        self.records.remove(record.uid)

    def _do(self, step: steps.Step, cancelled: ports.Cancelled) -> checkpoint.Facts:
        _still_there(cancelled)
        act = self._acts.get(step.act)
        if act is None:
            raise errors.NodeFault("carry out", step.act, f"expected one of {sorted(self._acts)}")
        facts = act(step)
        self._watch.at(f"step done: {step.act}")
        return facts


def _still_there(cancelled: ports.Cancelled) -> None:
    if cancelled():
        raise Abandoned("the caller has gone; nothing was kept")


def _never() -> bool:
    return False

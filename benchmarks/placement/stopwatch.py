"""Our allocator with a stopwatch: what deciding alone takes."""

import time

from driver.scheduling.allocator import dra_allocator, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import snapshot


class Stopwatch(dra_allocator.Allocator):
    """Counts decisions, and the processor time in them, whatever else the machine does."""

    def __init__(self, deciding: settings.Settings) -> None:
        super().__init__(deciding)
        self._decisions = 0
        self._seconds = 0.0

    @property
    def rate(self) -> float:
        """Decisions in a second."""
        return self._decisions / self._seconds if self._seconds else 0.0

    def decide(
        self, view: snapshot.Snapshot, workload: allocator_types.Workload
    ) -> allocator_types.Placement | allocator_types.Unschedulable:
        """As the allocator does."""
        begun = time.process_time()
        found = super().decide(view, workload)
        self._seconds += time.process_time() - begun
        self._decisions += 1
        return found

"""Changes by users to pods and claims that are in use."""

import random  # noqa: TID251 - the same every time

from tests.chaos import draw, faults, load


class Objects:
    """Objects of the load."""

    def __init__(self, work: load.Load) -> None:
        self._load = work

    def acts(self) -> faults.Acts:
        """Return the acts by kind."""
        return {
            draw.Kind.POD_FORCE_DELETED: self._force_delete,
            draw.Kind.CLAIM_RECREATED: self._recreate,
        }

    def _force_delete(self, fault: draw.Fault) -> None:
        """A third of what runs."""
        works = list(self._load.running(random.Random(fault.seed)))  # noqa: S311 - no secret
        for work in works[: max(1, len(works) // 3)]:
            self._load.force_delete(work)

    def _recreate(self, fault: draw.Fault) -> None:
        for work in self._load.running(random.Random(fault.seed)):  # noqa: S311 - no secret
            if work.ask.claim:
                self._load.recreate(work)
                return

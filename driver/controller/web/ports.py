"""What the page asks of the room around it."""

from typing import Protocol

from driver.scheduling.reports import catalog


class NotLeader(Exception):
    """This replica cannot tell: `leader` may, where one is known; `problem` says what is amiss."""

    def __init__(self, problem: str, leader: str = "") -> None:
        self.problem = problem
        self.leader = leader
        super().__init__(problem)


class ReportSource(Protocol):
    """Where reports come from."""

    def read(self) -> catalog.Reports:
        """What there is to see now, or was a moment ago. Raises Away."""
        ...

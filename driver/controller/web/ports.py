"""Interfaces that the page depends on."""

from typing import Protocol

from driver.scheduling.reports import catalog


class NotLeader(Exception):
    """This replica cannot answer: `problem` says why, `leader` names who can, if known."""

    def __init__(self, problem: str, leader: str = "") -> None:
        self.problem = problem
        self.leader = leader
        super().__init__(problem)


class ReportSource(Protocol):
    """Source of reports."""

    def read(self) -> catalog.Reports:
        """Return the current reports, at most a moment old. Raises NotLeader."""
        ...

"""Findings of checks: one line, with a remedy."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from driver.cli.doctor.checks import facts


class State(StrEnum):
    """`NOTE` is worth knowing and nothing to repair; `UNSEEN` could not be looked at."""

    FINE = "ok"
    NOTE = "note"
    WRONG = "wrong"
    UNSEEN = "not seen"


class Exit(IntEnum):
    """The command's exit codes."""

    FINE = 0
    WRONG = 1
    UNSEEN = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """`where` is `cluster`, or a node's name; `fix` is empty where there is nothing to do."""

    check: str
    state: State
    message: str
    fix: str = ""
    where: str = "cluster"

    def row(self) -> dict[str, str]:
        """Return the printed row."""
        return {
            "state": self.state.value,
            "where": self.where,
            "check": self.check,
            "found": self.message,
            "fix": self.fix,
        }


def unreadable_finding(check: str, unreadable: facts.Unreadable) -> Finding:
    """A check that could not be made."""
    if unreadable.forbidden:
        fix = f"ask for the right: kubectl auth can-i {unreadable.right}"
        return Finding(check, State.UNSEEN, f"you may not {unreadable.right}", fix)
    fix = "check the kubeconfig, and that the API server can be reached"
    return Finding(check, State.UNSEEN, unreadable.problem, fix)


def exit_code(findings: Iterable[Finding]) -> Exit:
    """Something wrong outweighs what was not seen."""
    states = {finding.state for finding in findings}
    if State.WRONG in states:
        return Exit.WRONG
    return Exit.UNSEEN if State.UNSEEN in states else Exit.FINE

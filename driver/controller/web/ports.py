"""What the page asks of the room around it."""

from collections.abc import Sequence
from typing import Protocol

from driver.controller.reports import model


class Reports(Protocol):
    """What there is to see at one moment. Lists are whole; the page takes its part of them."""

    def fleet(self) -> model.Fleet:
        """All of it in figures."""
        ...

    def nodes(self) -> Sequence[model.Node]:
        """Nodes with GPUs, by name."""
        ...

    def node(self, name: str) -> model.Node | None:
        """One node; None: there is none such, as for all that follow."""
        ...

    def gpu(self, node: str, name: str) -> model.Gpu | None:
        """One GPU, by name, UUID or PCI address."""
        ...

    def claims(self, namespace: str) -> Sequence[model.Claim]:
        """Claims by key, of one namespace or ("") of all."""
        ...

    def claim(self, key: str) -> model.Claim | None:
        """One claim."""
        ...

    def waiting(self) -> Sequence[model.Pod]:
        """Pods that wait, the oldest first."""
        ...

    def pod(self, key: str) -> model.Pod | None:
        """One pod, with why it is where it is."""
        ...

    def queues(self) -> Sequence[model.Queue]:
        """Queues, each before its children."""
        ...

    def queue(self, name: str) -> model.Queue | None:
        """One queue, with its pods."""
        ...

    def reservations(self) -> Sequence[model.Reservation]:
        """Reservations by key."""
        ...

    def reservation(self, key: str) -> model.Reservation | None:
        """One reservation."""
        ...

    def timeline(self) -> Sequence[model.Moment]:
        """What happened, the newest first."""
        ...


class Away(Exception):  # noqa: N818 - as the house's errors, by what happened
    """This replica cannot tell: `leader` does, where one is known; `problem` says what is amiss."""

    def __init__(self, problem: str, leader: str = "") -> None:
        self.problem = problem
        self.leader = leader
        super().__init__(problem)


class Source(Protocol):
    """Where reports come from."""

    def now(self) -> Reports:
        """What there is to see now, or was a moment ago. Raises Away."""
        ...

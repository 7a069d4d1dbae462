"""Sources of documents: the controller's API, or the API server's objects by themselves."""

from typing import Protocol

from driver.scheduling.reports import model, selection


class Source(Protocol):
    """The reports of the JSON API; `reports.reading.Reading` is one.

    Raises ApiError where what is asked was refused or not reached.
    """

    def fleet(self) -> model.Fleet:
        """All of it in figures."""
        ...

    def nodes(
        self, part: selection.PageRequest = ..., node_filter: selection.NodeFilter = ...
    ) -> model.Nodes:
        """Nodes with GPUs."""
        ...

    def node(self, name: str) -> model.Node | None:
        """One node with GPUs."""
        ...

    def claims(self, namespace: str = "", part: selection.PageRequest = ...) -> model.Claims:
        """Claims that concern us."""
        ...

    def claim(self, key: str) -> model.Claim | None:
        """One claim."""
        ...

    def waiting(self, namespace: str = "", part: selection.PageRequest = ...) -> model.Pods:
        """Pods that have not got their devices."""
        ...

    def pods(self, namespace: str = "", part: selection.PageRequest = ...) -> model.Pods:
        """Pods that concern us."""
        ...

    def pod(self, key: str) -> model.Pod | None:
        """One pod, explained."""
        ...

    def queues(self) -> model.Queues:
        """Queues."""
        ...

    def reservations(self) -> model.Reservations:
        """Reservations."""
        ...

    def shapes(self) -> model.Shapes:
        """Kinds of node that can be asked for."""
        ...

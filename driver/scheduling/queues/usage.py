"""Usage ledger: charges by claim, and the usage of each queue and its children. Pure."""

from collections.abc import Hashable, Mapping

from driver.scheduling.queues import resources
from driver.scheduling.queues import tree as trees


class UsageLedger:
    """Charges by claim; usage by queue, updated with each charge."""

    def __init__(self) -> None:
        self._charges: dict[Hashable, tuple[str, resources.Amounts]] = {}
        self._usage: dict[str, resources.Amounts] = {}

    def set_charge(
        self, tree: trees.QueueTree, claim: Hashable, queue: str, taken: resources.Amounts | None
    ) -> tuple[str, ...]:
        """Set the charge of a claim; None: removed. Returns the changed queues."""
        desired = None if taken is None else (queue, taken)
        previous = self._charges.pop(claim, None)
        if desired is not None:
            self._charges[claim] = desired
        if previous == desired:
            return ()
        changed: dict[str, None] = {}
        for charge, sign in ((previous, -1), (desired, 1)):
            if charge is not None:
                changed |= dict.fromkeys(self._add(tree, *charge, sign))
        return (*changed,)

    def _add(
        self, tree: trees.QueueTree, queue: str, taken: resources.Amounts, sign: int
    ) -> tuple[str, ...]:
        path = tree.path(queue)
        for name in path:
            usage = self._usage.get(name, resources.ZERO)
            self._usage[name] = usage + taken if sign > 0 else usage - taken
        return path

    def rebuild(self, tree: trees.QueueTree) -> None:
        """Recompute for another tree: usage of deleted queues is the implicit queue's."""
        self._usage.clear()
        for queue, taken in self._charges.values():
            self._add(tree, queue, taken, 1)

    def usage(self, queue: str) -> resources.Amounts:
        """Return the usage of a queue and its children."""
        return self._usage.get(queue, resources.ZERO)

    def own_usage(self, tree: trees.QueueTree) -> Mapping[str, resources.Amounts]:
        """Return the usage of queues without their children."""
        amounts: dict[str, resources.Amounts] = {}
        for name in tree.accepted:
            own = self.usage(name)
            for child in tree.children.get(name, ()):
                own -= self.usage(child)
            amounts[name] = own
        return amounts

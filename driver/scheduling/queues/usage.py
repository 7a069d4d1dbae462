"""What each claim takes and each queue has, as the sum of its claims and its children's. Pure."""

from collections.abc import Hashable, Mapping

from driver.scheduling.queues import resources
from driver.scheduling.queues import tree as trees


class UsageLedger:
    """Charges by claim; sums by queue, kept up to date with each charge."""

    def __init__(self) -> None:
        self._charges: dict[Hashable, tuple[str, resources.Amounts]] = {}
        self._usage: dict[str, resources.Amounts] = {}

    def set_charge(
        self, tree: trees.QueueTree, claim: Hashable, leaf: str, taken: resources.Amounts | None
    ) -> tuple[str, ...]:
        """A claim of a queue takes so much now; None: nothing any more. The queues that changed."""
        wanted = None if taken is None else (leaf, taken)
        before = self._charges.pop(claim, None)
        if wanted is not None:
            self._charges[claim] = wanted
        if before == wanted:
            return ()
        changed: dict[str, None] = {}
        for charge, sign in ((before, -1), (wanted, 1)):
            if charge is not None:
                changed |= dict.fromkeys(self._add(tree, *charge, sign))
        return (*changed,)

    def _add(
        self, tree: trees.QueueTree, leaf: str, taken: resources.Amounts, sign: int
    ) -> tuple[str, ...]:
        path = tree.path(leaf)
        for name in path:
            known = self._usage.get(name, resources.ZERO)
            self._usage[name] = known + taken if sign > 0 else known - taken
        return path

    def rebuild(self, tree: trees.QueueTree) -> None:
        """The tree is another one: what queues that are gone had is the implicit queue's."""
        self._usage.clear()
        for leaf, taken in self._charges.values():
            self._add(tree, leaf, taken, 1)

    def usage(self, queue: str) -> resources.Amounts:
        """What a queue and its children have."""
        return self._usage.get(queue, resources.ZERO)

    def own_usage(self, tree: trees.QueueTree) -> Mapping[str, resources.Amounts]:
        """What queues have without their children."""
        found: dict[str, resources.Amounts] = {}
        for name in tree.accepted:
            rest = self.usage(name)
            for child in tree.children.get(name, ()):
                rest -= self.usage(child)
            found[name] = rest
        return found

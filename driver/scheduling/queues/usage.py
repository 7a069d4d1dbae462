"""What each claim takes and each queue has, as the sum of its claims and its children's. Pure."""

from collections.abc import Hashable, Mapping

from driver.scheduling.queues import resources
from driver.scheduling.queues import tree as trees


class Ledger:
    """Charges by claim; sums by queue, kept up to date with each charge."""

    def __init__(self) -> None:
        self._charges: dict[Hashable, tuple[str, resources.Amounts]] = {}
        self._sums: dict[str, resources.Amounts] = {}

    def put(
        self, tree: trees.Tree, claim: Hashable, leaf: str, taken: resources.Amounts | None
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
        self, tree: trees.Tree, leaf: str, taken: resources.Amounts, sign: int
    ) -> tuple[str, ...]:
        path = tree.path(leaf)
        for name in path:
            known = self._sums.get(name, resources.NOTHING)
            self._sums[name] = known + taken if sign > 0 else known - taken
        return path

    def rebuild(self, tree: trees.Tree) -> None:
        """The tree is another one: what queues that are gone had is the implicit queue's."""
        self._sums.clear()
        for leaf, taken in self._charges.values():
            self._add(tree, leaf, taken, 1)

    def used(self, queue: str) -> resources.Amounts:
        """What a queue and its children have."""
        return self._sums.get(queue, resources.NOTHING)

    def own(self, tree: trees.Tree) -> Mapping[str, resources.Amounts]:
        """What queues have without their children."""
        found: dict[str, resources.Amounts] = {}
        for name in tree.accepted:
            rest = self.used(name)
            for child in tree.children.get(name, ()):
                rest -= self.used(child)
            found[name] = rest
        return found

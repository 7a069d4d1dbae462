"""How many members of a wish one node of a shape takes, and what it lacks for others. Pure."""

from collections.abc import Hashable
from dataclasses import dataclass

from driver import ids
from driver.controller import view as cluster
from driver.controller.allocation import settings, shapes
from driver.controller.allocation import words as of_one
from driver.controller.allocation.gangs import trial
from driver.controller.provisioning import imagined, shape, wishes
from driver.controller.reservations import without

_Alike = tuple[Hashable, ...]
_PROBE = ids.NodeName("\0probe")
"""No node has such a name."""


@dataclass(frozen=True, slots=True)
class Size:
    """Of each group of alike members: how many there are, and how many of them one node takes.

    `refusal` says why it takes none of some group; "" where it takes some of each.
    """

    groups: tuple[tuple[int, int], ...] = ()
    refusal: str = ""

    @property
    def nodes(self) -> int:
        """So many nodes do, where nothing but their number matters."""
        return sum(-(-members // each) for members, each in self.groups)


class Sizes:
    """Remembers: wishes that are alike are alike to an empty node."""

    def __init__(self, view: cluster.ClusterView, deciding: settings.Settings) -> None:
        self._view = view
        self._deciding = deciding
        self._known: dict[tuple[str, _Alike], Size] = {}

    def of(self, one: shape.Shape, wish: wishes.Wish) -> Size:
        """Of an empty node of a shape."""
        alike = tuple(shapes.of(work) for work in wish.workloads)
        key = one.name, alike
        if key not in self._known:
            self._known[key] = self._sized(one, wish)
        return self._known[key]

    def _sized(self, one: shape.Shape, wish: wishes.Wish) -> Size:
        below = imagined.Imagined(self._view, {_PROBE: one})
        alone = without.Without(below, (), (_PROBE,))
        tried = trial.Trial(alone, wish.workloads, self._deciding)
        blocker = tried.blocker()
        if blocker is not None:
            return Size(refusal=of_one.no_fit(blocker))
        found = []
        for members in tried.groups(range(len(wish.workloads))):
            filled = tried.filling(members, _PROBE)
            if not filled.count:
                refused = filled.refusal
                return Size(refusal=of_one.node(refused) if refused else "has no device for it")
            found.append((len(members), filled.count))
        return Size(tuple(found))

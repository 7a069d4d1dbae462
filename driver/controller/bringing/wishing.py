"""What waits for a node now: pods, gangs and Reservations without a place, in their order."""

from collections.abc import Iterator

from driver import ids
from driver.controller import state
from driver.controller import view as cluster
from driver.controller.gangs import roster
from driver.controller.provisioning import wishes
from driver.controller.queueing import engine
from driver.controller.reservations import planning, term
from driver.controller.room import reserving
from driver.controller.waiting import serving
from driver.resources import pods, reservations


class Wishing:
    """On the decider's thread."""

    def __init__(
        self,
        known: state.State,
        fair: engine.Engine,
        turns: serving.Serving,
        kept: reserving.Reserving,
        gangs: roster.Roster,
    ) -> None:
        self._known = known
        self._engine = fair
        self._turns = turns
        self._reserving = kept
        self._gangs = gangs

    def all(self) -> list[wishes.Wish]:
        """Those that nothing else is underway for: pods and gangs first, by their turn."""
        return [*self._of_line(), *self._of_reservations()]

    def _of_line(self) -> Iterator[wishes.Wish]:
        for one in self._turns.line():
            if not self._reserving.is_underway(one):
                leaf = self._turns.leaf_of(one)
                yield wishes.Wish(one.wish, one.workloads, one.near, leaf)

    def _of_reservations(self) -> Iterator[wishes.Wish]:
        now = self._known.clock.now()
        for key in self._reserving.pending():
            one = self._known.stores.reserved.get(key)
            if one is None or one.deleting or one.evicting:
                continue
            lead_s = (term.starts(one) - now).total_seconds()
            leaf = self._engine.leaf_of(term.holder(one))
            found = planning.workloads(one)
            yield wishes.Wish(wishes.of_reservation(key), found, leaf=leaf, lead_s=max(0.0, lead_s))

    def waits(self, wish: str) -> bool:
        """Whether something waits still, by the objects alone: a new leader knows it, too."""
        if self.reservation(wish) is not None:
            return True
        return any(self._is_open(pod) for pod in self.people(wish))

    def reservation(self, wish: str) -> reservations.Reservation | None:
        """The Reservation that a wish is, as long as it holds nothing and is not over."""
        kind, key = parted(wish)
        one = self._known.stores.reserved.get(key) if kind == wishes.RESERVATION else None
        if one is None or one.held or one.deleting:
            return None
        return one if self._known.clock.now() < term.ends(one) else None

    def people(self, wish: str) -> tuple[pods.Pod, ...]:
        """The pods of a wish that are there."""
        kind, key = parted(wish)
        if kind == "pod":
            pod = self._known.stores.pods.get(key)
            return (pod,) if pod is not None else ()
        return self._gangs.members(key) if kind == "gang" else ()

    def _is_open(self, pod: pods.Pod) -> bool:
        if pod.node is not None or pod.finished or pod.deleting:
            return False
        found = cluster.claims_of(pod, self._known.stores.claims.get)
        return found is None or any(claim.allocation is None for claim in found)


def parted(wish: str) -> tuple[str, ids.Key]:
    """The kind and the key of a wish."""
    kind, _, key = wish.partition("/")
    return kind, ids.Key(key)

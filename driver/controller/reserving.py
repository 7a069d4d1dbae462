"""Reservations: what they hold is kept in the picture, given to their holders, and given back."""

import datetime as dt
from collections.abc import Callable, Iterator, Sequence

import structlog

from driver import clock, ids, reasons
from driver.controller import candidates, scribe, state, writers
from driver.controller import view as cluster
from driver.controller.allocation import settings
from driver.controller.allocation.gangs import result, topology
from driver.controller.allocation.gangs import words as seating_words
from driver.controller.allocation.whatif import tenants
from driver.controller.reservations import planning, term, without
from driver.resources import pods, reservations

_log = structlog.get_logger(__name__)
_AGAIN_S = 30.0
_OVER = frozenset({"Used", "Expired"})
_REASONS = {
    "Pending": reasons.Reason.RESERVATION_PENDING,
    "Held": reasons.Reason.RESERVATION_HELD,
    "Used": reasons.Reason.RESERVATION_USED,
    "Expired": reasons.Reason.RESERVATION_EXPIRED,
}
LeafOf = Callable[[pods.Pod], str]


class Reserving:
    """On the decider's thread."""

    def __init__(
        self,
        known: state.State,
        hands: scribe.Scribe,
        deciding: settings.Settings,
        leaf_of: LeafOf,
    ) -> None:
        self._known = known
        self._hands = hands
        self._deciding = deciding
        self._leaf_of = leaf_of
        self._live: dict[ids.Key, reservations.Reservation] = {}
        self._pending: set[ids.Key] = set()

    def put(self, key: ids.Key, one: reservations.Reservation | None) -> None:
        """A Reservation came, changed or went: what it holds is held in the picture."""
        if one is None:
            gone = self._live.pop(key, None)
            self._pending.discard(key)
            if gone is not None:
                self._known.view.put_hold(term.key_of(gone), None)
            return
        self._live[key] = one
        self._keep(one)

    def _keep(self, one: reservations.Reservation) -> tuple[reservations.Held, ...]:
        """Hold what nobody has used yet; that."""
        left = term.left(one, self._known.view, self._users(one))
        self._known.view.put_hold(term.key_of(one), term.allocation(left))
        return left

    def _users(self, one: reservations.Reservation) -> Iterator[ids.Key]:
        """The claims of its holder."""
        found = self._known.stores.pods
        for held in one.held:
            for holder in self._known.view.holders(held.device):
                claim = self._known.stores.claims.get(holder.claim)
                for entry in claim.consumers if claim is not None else ():
                    pod = found.get(ids.Key(f"{holder.namespace}/{entry.name}"))
                    if pod is not None and term.is_for(one, pod, self._leaf_of(pod)):
                        yield holder.claim
        for decision in self._known.memory.in_flight.values():
            if term.is_for(one, decision.pod, self._leaf_of(decision.pod)):
                yield from decision.made

    # What is due.

    def look(self, item: writers.Item) -> float | None:
        """Do what is due for a Reservation; seconds until it is to be looked at again."""
        self._known.bring()
        one = self._live.get(item.key)
        if one is None or one.deleting or one.phase in _OVER:
            return None
        now = self._known.clock.now()
        left = self._keep(one)
        if one.held and not left:
            self._end(one, "Used", "every device is used")
            return None
        if now >= term.ends(one):
            self._end(one, "Expired", f"nobody used it by {clock.rfc3339(term.ends(one))}")
            return None
        if not one.held and not one.evicting:
            self._plan(one, now)
        until_end = (term.ends(one) - now).total_seconds()
        until_start = (term.starts(one) - now).total_seconds()
        return min([one for one in (until_end, until_start, _AGAIN_S) if one > 0])

    def pending(self) -> tuple[ids.Key, ...]:
        """Those for which no devices were found yet."""
        return tuple(sorted(self._pending))

    def _plan(self, one: reservations.Reservation, now: dt.datetime) -> None:
        people = tenants.Tenants(
            self._known.view, self._known.stores.claims.get, self._known.stores.pods.get
        )
        view = planning.at_start(self._known.view, people, one, now)
        found = planning.plan(view, one, self._deciding)
        if isinstance(found, result.Unseated):
            self._pending.add(one.key)
            words = seating_words.unseated(found, topology.Topology())
            wrong = planning.fault(view, one) if found.blocker is not None else ""
            self._say(one, "Pending", (), wrong or words, refused=found.blocker is not None)
            return
        self._pending.discard(one.key)
        self._known.view.put_hold(term.key_of(one), term.allocation(found))
        self._say(one, "Held", found, "")

    def _end(self, one: reservations.Reservation, phase: str, why: str) -> None:
        """One of ours goes; one that somebody made stays, and says what became of it."""
        self._pending.discard(one.key)
        self._known.view.put_hold(term.key_of(one), None)
        if one.evicting:
            self._hands.unreserve(one)
        else:
            self._say(one, phase, (), why)

    def _say(
        self,
        one: reservations.Reservation,
        phase: str,
        held: Sequence[reservations.Held],
        why: str,
        *,
        refused: bool = False,
    ) -> None:
        reason = reasons.Reason.RESERVATION_REFUSED if refused else _REASONS[phase]
        now = clock.rfc3339(self._known.clock.now())
        accepted = reservations.accepted(one, "" if not refused else why, reason.value, now)
        body = reservations.render_status(one, phase, held, accepted, why)
        if not reservations.same(one.status, body):
            _log.info("reservation", key=one.key, phase=phase, devices=len(held), why=why)
            self._hands.reservation(one, body, reason, why)

    # For those who are placed.

    def kept_for(self, candidate: candidates.Candidate) -> tuple[reservations.Reservation, ...]:
        """The Reservations that hold something for a candidate now."""
        return tuple(
            one
            for one in self._live.values()
            if self._known.view.allocation(term.key_of(one)) is not None
            and all(
                term.is_for(one, work.pod, self._leaf_of(work.pod)) for work in candidate.workloads
            )
        )

    def lent_to(self, candidate: candidates.Candidate) -> tuple[reservations.Reservation, ...]:
        """Those that have not started, and will not before a candidate is over."""
        now = self._known.clock.now()
        return tuple(
            one
            for one in self._live.values()
            if term.starts(one) > now
            and all(
                term.is_over_by(work.pod, term.starts(one), now) for work in candidate.workloads
            )
        )

    def view_for(
        self, found: Sequence[reservations.Reservation], *, narrow: bool
    ) -> cluster.ClusterView:
        """The picture without what these hold; `narrow`: of the nodes alone where they hold it."""
        only = {held.node for one in found for held in one.held} if narrow else None
        return without.Without(self._known.view, [term.key_of(one) for one in found], only)

    def used(self, found: Sequence[reservations.Reservation]) -> None:
        """Their holder was just placed."""
        for one in found:
            self._keep(one)

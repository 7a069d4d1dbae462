"""Describes the holders of devices that a refused pod lacks: pod, plan or Reservation."""

from collections.abc import Callable, Iterator

from driver import ids
from driver.controller.informers import stores
from driver.controller.scheduler import state
from driver.controller.scheduler.explain import in_flight
from driver.resources.dra import claims
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import device_holders
from driver.scheduling.lifecycle import backfill_plan
from driver.scheduling.reservations import term
from driver.scheduling.snapshot import snapshot

_MOST_PODS = 2


class HolderNames:
    """On the decider's thread; `plan` returns the backfill plan."""

    def __init__(
        self,
        shared: state.SchedulerContext,
        claims_now: in_flight.InFlightClaims,
        plan: Callable[[], backfill_plan.BackfillPlan | None],
    ) -> None:
        self._context = shared
        self._claims = claims_now
        self._plan = plan

    def describe_rejection(
        self,
        view: snapshot.Snapshot,
        answer: allocator_types.Unschedulable,
        first: ids.NodeName | None = None,
    ) -> str:
        """`6 GPUs of node-1 are kept for team/b until ..., 2 are taken by pod team/a`; or ""."""
        return device_holders.describe(
            device_holders.rejection_holders(view, answer, first), self.name
        )

    def describe_plan(self, *, own: bool) -> str:
        """`6 GPUs of node-1 are kept for team/b until ...`: those nobody uses; "" without."""
        plan = self._plan()
        if plan is None:
            return ""
        free = backfill_plan.idle_gpus(plan, self._context.view)
        words = backfill_plan.PLAN_SENTENCE if own else f"Kept for {plan.key} until"
        parts = (f"{device_holders.format_gpus(count)} of {node}" for node, count in free.items())
        listed = ", ".join(parts)
        return f"{words} {plan.end}: {listed or 'no GPU yet'}"

    def name(self, key: ids.Key) -> str:
        """`taken by pod team/a`, `kept for team/b until ...`, `held by Reservation team/c`."""
        plan = self._plan()
        if key == backfill_plan.KEY:
            return f"kept for {plan.key} until {plan.end}" if plan else "kept"
        reservation = term.reservation_of(key)
        if reservation is not None:
            return f"held by Reservation {reservation}"
        claim = self._claims.claim(key)
        users = sorted({*self._users(claim)}) if claim is not None else []
        if claim is None or not users:
            return f"taken by claim {key}, which no pod uses"
        shown = ", ".join(users[:_MOST_PODS])
        rest = len(users) - _MOST_PODS
        more = f" and {rest} more" if rest > 0 else ""
        return f"taken by pod{'s' if len(users) > 1 else ''} {shown}{more} (claim {claim.name})"

    def _users(self, claim: claims.Claim) -> Iterator[ids.Key]:
        for pod in stores.consumer_pods(self._context.stores, claim):
            yield pod.key

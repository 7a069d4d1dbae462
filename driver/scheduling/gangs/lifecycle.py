"""Next action for a gang. Pure: objects in, an action out.

Members are written with the binding condition `ration.dev/GangReady` (KEP-5007): kube-scheduler
takes each as far as its binding and waits there. Once it has all of them so far, the condition is
set, and all are bound; otherwise, after a timeout, none is: the failure condition is set, which
ends kube-scheduler's waiting, and then the devices are freed. All state is in the API objects, so
that the next leader continues where the last one ended.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from driver import ids, names
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.gangs import index
from driver.scheduling.snapshot import allocation_hold, snapshot

LOST_AFTER_S = 30.0
"""After this time kube-scheduler has forgotten a pod that is still in reservedFor."""
OBSERVED_AFTER_S = 6.0
"""kube-scheduler checks binding conditions every 5 s (dynamicresources.go, 1.36 and 1.37)."""
SILENT_AFTER_S = 15.0
"""After this time without a refusal a member without nomination counts as reached."""
_RECHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class Member:
    """A live pod of a gang with its claims; bound members use the claims `in_use` too."""

    pod: pods.Pod
    pod_claims: tuple[claims.Claim, ...]
    in_use: frozenset[ids.Key] = frozenset()

    @property
    def open_claims(self) -> tuple[claims.Claim, ...]:
        """Claims without an allocation."""
        return tuple(claim for claim in self.pod_claims if claim.allocation is None)

    @property
    def allocated_claims(self) -> tuple[claims.Claim, ...]:
        """Claims with one."""
        return tuple(claim for claim in self.pod_claims if claim.allocation is not None)

    @property
    def held_claims(self) -> tuple[claims.Claim, ...]:
        """Claims that we allocated and that are held for the pod until it is bound.

        What a bound member uses is not taken back, whatever becomes of this one.
        """
        return tuple(
            claim
            for claim in self.allocated_claims
            if claim.key not in self.in_use and allocation_hold.has_hold(claim, self.pod)
        )

    @property
    def reserved_claims(self) -> tuple[claims.Claim, ...]:
        """Written claims that the pod has reserved: kube-scheduler has begun to bind it."""
        return tuple(
            claim for claim in self.held_claims if allocation_hold.is_reserved_by(claim, self.pod)
        )

    @property
    def removable_claims(self) -> tuple[claims.Claim, ...]:
        """Reserved claims without a PodGroup's entry, which kube-scheduler alone removes."""
        return tuple(
            claim
            for claim in self.reserved_claims
            if not allocation_hold.is_reserved_for_group(claim)
        )


@dataclass(frozen=True, slots=True)
class Nothing:
    """All members run, or are not ours to schedule."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The gang cannot be placed yet."""

    reason: str


@dataclass(frozen=True, slots=True)
class Place:
    """Place these members together; the others have their devices already."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Ungate:
    """All members have devices: remove the scheduling gate of these."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Ready:
    """All members of the gang can be bound: set the condition on these."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Fail:
    """Set the failure condition on these; `started` run already."""

    members: tuple[Member, ...]
    reason: str
    started: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Clear:
    """kube-scheduler has unreserved these: free their devices."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class RemoveReservation:
    """Remove these from reservedFor: kube-scheduler should have, and did not."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Recheck:
    """Check again in `after_s` seconds."""

    after_s: float


Action = Nothing | Wait | Place | Ungate | Ready | Fail | Clear | RemoveReservation | Recheck


SecondsSince = Callable[[dt.datetime], float]
"""Seconds since a stamp; at least 0."""


def next_action(gang: index.Gang, members: Sequence[Member], seconds_since: SecondsSince) -> Action:
    """Return the next action for a gang whose members' claims all exist."""
    unbound = [member for member in members if member.pod.node is None]
    written = tuple(member for member in unbound if member.held_claims)
    failed = _failed_at(written)
    if failed is not None:
        return _release_failed(written, seconds_since(failed))
    short = _pending_reason(gang, members, unbound)
    begun = bool(written) and all(_is_ready(member) for member in written)
    if short and begun:
        # The gang was ready, and one member finished before the others were bound.
        return _await_binding(gang, members, written, seconds_since)
    if short:
        return Fail(written, short) if written else Wait(short)
    lacking = tuple(member for member in unbound if member.open_claims)
    if any(claim.deleting for member in lacking for claim in member.open_claims):
        return Nothing()
    enough = len(members) - len(lacking) >= gang.min_members
    if lacking and not (enough and written):
        return Place(lacking)
    return _await_binding(gang, members, written, seconds_since) if written else Nothing()


def _release_failed(written: tuple[Member, ...], age_s: float) -> Action:
    """Free the devices once kube-scheduler has let go of the pods: it unreserves each of them."""
    if age_s < OBSERVED_AFTER_S:
        return Recheck(min(OBSERVED_AFTER_S - age_s, OBSERVED_AFTER_S))
    reserved = tuple(member for member in written if member.reserved_claims)
    if not reserved:
        return Clear(written)
    lost = tuple(member for member in reserved if member.removable_claims)
    return RemoveReservation(lost) if lost and age_s >= LOST_AFTER_S else Recheck(_RECHECK_S)


def _pending_reason(gang: index.Gang, members: Sequence[Member], unbound: Iterable[Member]) -> str:
    """Return why the gang cannot be placed yet; empty if it can."""
    missing = gang.min_members - len(members)
    if missing > 0:
        return f"waits for {missing} more of its {gang.min_members} pods"
    gates = {gate for member in unbound for gate in member.pod.gates} - {names.ALLOCATION_GATE}
    return f"waits for scheduling gate {', '.join(sorted(gates))}" if gates else ""


def _await_binding(
    gang: index.Gang,
    members: Sequence[Member],
    written: tuple[Member, ...],
    seconds_since: SecondsSince,
) -> Action:
    """Return the action for a gang with devices and unbound members."""
    gated = tuple(member for member in written if member.pod.gates)
    if gated:
        return Ungate(gated)
    first = min(_allocated_at(member) for member in written)
    age = seconds_since(first)
    if age >= gang.timeout_s:
        late = len(written)
        why = f"{late} of {len(members)} pods were not bound within {gang.timeout_s:.0f} s"
        started = (
            member for member in members if member.pod.node is not None and member.allocated_claims
        )
        late_starters = tuple(member for member in started if _allocated_at(member) >= first)
        return Fail(written, why, late_starters)
    if all(_is_ready(member) for member in written):
        return Recheck(gang.timeout_s - age)
    reached = sum(
        member.pod.node is not None
        or (not member.open_claims and _is_reached(member, seconds_since))
        for member in members
    )
    if all(_is_reached(member, seconds_since) for member in written) and (
        reached >= gang.min_members
    ):
        return Ready(written)
    return Recheck(_RECHECK_S)


def _allocated_at(member: Member) -> dt.datetime:
    """Return when its devices were written; an unreadable time counts as the epoch."""
    times = []
    for text in (
        claim.allocation.stamped for claim in member.pod_claims if claim.allocation is not None
    ):
        try:
            times.append(dt.datetime.fromisoformat(text))
        except (ValueError, TypeError):
            times.append(dt.datetime.fromtimestamp(0, dt.UTC))
    return min(times)


def _is_ready(member: Member) -> bool:
    return all(
        _has_condition(claim, names.GANG_READY)
        for claim in member.held_claims
        if has_binding_condition(claim)
    )


def _has_condition(claim: claims.Claim, kind: str) -> bool:
    conditions = (condition.condition(kind) for condition in claim.device_statuses)
    return any(condition is not None and condition.status == "True" for condition in conditions)


def has_binding_condition(claim: claims.Claim) -> bool:
    """Return whether the binding of a claim's pod waits for its gang."""
    results = claim.allocation.results if claim.allocation else ()
    return any(names.GANG_READY in result.binding for result in results)


def _is_reached(member: Member, seconds_since: SecondsSince) -> bool:
    """Return whether kube-scheduler has taken a member as far as its binding.

    It nominates the node then (KEP-5278, on by default from 1.35). A scheduler that does not has
    `SILENT_AFTER_S` to refuse. A claim that members share has the hold of one of them.
    """
    waiting = member.held_claims or filter(has_binding_condition, member.allocated_claims)
    node = next((snapshot.pinned_node(claim) for claim in waiting), None)
    if node is None:
        return True
    silent = (
        seconds_since(_allocated_at(member)) >= SILENT_AFTER_S and not member.pod.verdict.refused
    )
    return member.pod.nominated == node or silent


def _failed_at(written: Iterable[Member]) -> dt.datetime | None:
    """Return when the gang failed last; None if it did not."""
    conditions = (
        entry.condition(names.GANG_FAILED)
        for member in written
        for claim in member.held_claims
        for entry in claim.device_statuses
    )
    since = (
        condition.since
        for condition in conditions
        if condition is not None and condition.status == "True"
    )
    return max((dt.datetime.fromisoformat(condition) for condition in since), default=None)

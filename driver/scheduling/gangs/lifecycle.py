"""What is due for a gang, now. Pure: objects in, a turn out.

Members are written with the binding condition `ration.dev/GangReady` (KEP-5007): kube-scheduler
takes each as far as its binding and waits there. Once it has all of them so far, the condition is
set, and all are bound; if that does not come about in time none is: the failure condition is set,
which ends kube-scheduler's waiting, and then the devices are freed. What is known is in the API
objects alone, so that the next leader goes on where the last one died.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from driver import names
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.gangs import index
from driver.scheduling.snapshot import allocation_hold, snapshot

LOST_AFTER_S = 30.0
"""A pod that kube-scheduler has not taken out of reservedFor by then was forgotten by it."""
OBSERVED_AFTER_S = 6.0
"""kube-scheduler looks at binding conditions every 5 s (dynamicresources.go, 1.36 and 1.37)."""
SILENT_AFTER_S = 15.0
"""After so long without a word, a member that no scheduler nominates counts as reached."""
_RECHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class Member:
    """A live pod of a gang with its claims."""

    pod: pods.Pod
    pod_claims: tuple[claims.Claim, ...]

    @property
    def open_claims(self) -> tuple[claims.Claim, ...]:
        """Claims without an allocation."""
        return tuple(one for one in self.pod_claims if one.allocation is None)

    @property
    def allocated_claims(self) -> tuple[claims.Claim, ...]:
        """Claims with one."""
        return tuple(one for one in self.pod_claims if one.allocation is not None)

    @property
    def held_claims(self) -> tuple[claims.Claim, ...]:
        """Claims that we allocated and that are held for the pod until it is bound."""
        return tuple(
            one for one in self.allocated_claims if allocation_hold.has_hold(one, self.pod)
        )

    @property
    def reserved_claims(self) -> tuple[claims.Claim, ...]:
        """Written claims that the pod has reserved: kube-scheduler has begun to bind it."""
        return tuple(
            claim for claim in self.held_claims if allocation_hold.is_reserved_by(claim, self.pod)
        )


@dataclass(frozen=True, slots=True)
class Nothing:
    """All members run, or are not ours to act for."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The gang cannot be placed yet, in words."""

    reason: str


@dataclass(frozen=True, slots=True)
class Place:
    """These are to be placed together; the others have their devices already."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Ungate:
    """All members have devices: kube-scheduler may have these."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Ready:
    """All members of the gang can be bound: say so on these."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Fail:
    """The gang is given up: kube-scheduler is to let go of these; `started` run already."""

    members: tuple[Member, ...]
    reason: str
    started: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Clear:
    """kube-scheduler has let go of these: their devices are freed."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class RemoveReservation:
    """Take these out of reservedFor: kube-scheduler should have, and did not."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Recheck:
    """Look again in `after_s` seconds."""

    after_s: float


Action = Nothing | Wait | Place | Ungate | Ready | Fail | Clear | RemoveReservation | Recheck


def next_action(gang: index.Gang, members: Sequence[Member], now: dt.datetime) -> Action:
    """The turn of a gang whose members' claims are all there."""
    unbound = [one for one in members if one.pod.node is None]
    written = tuple(one for one in unbound if one.held_claims)
    failed = _failed_at(written)
    if failed is not None:
        return _release_failed(written, (now - failed).total_seconds())
    short = _pending_reason(gang, members, unbound)
    begun = bool(written) and all(_is_ready(one) for one in written)
    if short and begun:
        # All could be bound, and one of them was done before the others were.
        return _await_binding(gang, members, written, now)
    if short:
        return Fail(written, short) if written else Wait(short)
    lacking = tuple(one for one in unbound if one.open_claims)
    if any(claim.deleting for one in lacking for claim in one.open_claims):
        return Nothing()
    enough = len(members) - len(lacking) >= gang.min_members
    if lacking and not (enough and written):
        return Place(lacking)
    return _await_binding(gang, members, written, now) if written else Nothing()


def _release_failed(written: tuple[Member, ...], age_s: float) -> Action:
    """Free the devices once kube-scheduler has let go of the pods: it unreserves each of them."""
    if age_s < OBSERVED_AFTER_S:
        return Recheck(min(OBSERVED_AFTER_S - age_s, OBSERVED_AFTER_S))
    reserved = tuple(member for member in written if member.reserved_claims)
    if not reserved:
        return Clear(written)
    return RemoveReservation(reserved) if age_s >= LOST_AFTER_S else Recheck(_RECHECK_S)


def _pending_reason(gang: index.Gang, members: Sequence[Member], unbound: Iterable[Member]) -> str:
    """Why the gang cannot be placed as yet; empty where it can."""
    missing = gang.min_members - len(members)
    if missing > 0:
        return f"waits for {missing} more of its {gang.min_members} pods"
    gates = {gate for one in unbound for gate in one.pod.gates} - {names.ALLOCATION_GATE}
    return f"waits for scheduling gate {', '.join(sorted(gates))}" if gates else ""


def _await_binding(
    gang: index.Gang, members: Sequence[Member], written: tuple[Member, ...], now: dt.datetime
) -> Action:
    """All have devices, and these are not bound yet."""
    gated = tuple(one for one in written if one.pod.gates)
    if gated:
        return Ungate(gated)
    first = min(_allocated_at(one) for one in written)
    age = (now - first).total_seconds()
    if age >= gang.timeout_s:
        late = len(written)
        why = f"{late} of {len(members)} pods were not bound within {gang.timeout_s:.0f} s"
        started = (one for one in members if one.pod.node is not None and one.allocated_claims)
        return Fail(written, why, tuple(one for one in started if _allocated_at(one) >= first))
    if all(_is_ready(one) for one in written):
        return Recheck(gang.timeout_s - age)
    if all(_is_reached(one, now) for one in written):
        return Ready(written)
    return Recheck(_RECHECK_S)


def _allocated_at(member: Member) -> dt.datetime:
    """When its devices were written; what nobody can read counts as long ago."""
    found = []
    for text in (one.allocation.stamped for one in member.pod_claims if one.allocation is not None):
        try:
            found.append(dt.datetime.fromisoformat(text))
        except (ValueError, TypeError):
            found.append(dt.datetime.fromtimestamp(0, dt.UTC))
    return min(found)


def _is_ready(member: Member) -> bool:
    return all(
        _has_condition(claim, names.GANG_READY)
        for claim in member.held_claims
        if has_binding_condition(claim)
    )


def _has_condition(claim: claims.Claim, kind: str) -> bool:
    found = (one.condition(kind) for one in claim.said)
    return any(one is not None and one.status == "True" for one in found)


def has_binding_condition(claim: claims.Claim) -> bool:
    """Whether the binding of a claim's pod waits for its gang."""
    results = claim.allocation.results if claim.allocation else ()
    return any(names.GANG_READY in one.binding for one in results)


def _is_reached(member: Member, now: dt.datetime) -> bool:
    """Whether kube-scheduler has taken a member as far as its binding.

    It nominates the node then (KEP-5278, on by default from 1.35). A scheduler that does not is
    given some time to refuse.
    """
    node = next((snapshot.pinned_node(one) for one in member.held_claims), None)
    if node is None:
        return True
    silent = (
        now - _allocated_at(member)
    ).total_seconds() >= SILENT_AFTER_S and not member.pod.verdict.refused
    return member.pod.nominated == node or silent


def _failed_at(written: Iterable[Member]) -> dt.datetime | None:
    """When the gang was given up last, where it was."""
    said = (
        entry.condition(names.GANG_FAILED)
        for member in written
        for claim in member.held_claims
        for entry in claim.said
    )
    since = (one.since for one in said if one is not None and one.status == "True")
    return max((dt.datetime.fromisoformat(one) for one in since), default=None)

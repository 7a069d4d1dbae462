"""A model of how the controller and kube-scheduler agree on a node, explored exhaustively (ADR 18).

Two nodes of one GPU, two pods, a claim each. The API server's steps are atomic; every cache lags as
it likes, every request may stay under way as long as it likes. A copy of a claim is its content and
whether it is of the present version: that is all that a resourceVersion decides.

kube-scheduler is modelled after dynamicresources.go of 1.37.1: Filter by its cache, PreBind writes
the pod into reservedFor unless the cache says that it is there, after a conflict it reads the claim
and writes again without a look at the allocation, then it binds; a binding that fails unreserves.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

NODES = (0, 1)


class Claim(NamedTuple):
    """Content of a claim: the node of its allocation, our hold, the pod's entry in reservedFor."""

    node: int | None = None
    hold: bool = False
    reserved: bool = False


class Copy(NamedTuple):
    """A claim as somebody read it; `fresh` while the API server holds this very version."""

    claim: Claim
    fresh: bool = True


class Write(NamedTuple):
    """A patch of the controller under way; refused unless fresh and of the present leader."""

    result: Claim
    fresh: bool = True
    leader: int = 0


class Attempt(NamedTuple):
    """An attempt of kube-scheduler to bind the pod to `node`: filtered, reading or bindable."""

    node: int
    step: str
    copy: Copy


class Side(NamedTuple):
    """All that concerns one pod and its claim."""

    claim: Claim = Claim()
    bound: int | None = None
    cache: Copy = Copy(Claim())
    """The controller's."""
    sees_bound: bool = False
    write: Write | None = None
    scheduler: Copy = Copy(Claim())
    attempt: Attempt | None = None


@dataclass(frozen=True)
class Protocol:
    """The steps that keep the agreement; each can be taken out."""

    hold_alone: bool = True
    """An allocation is written without the pod's entry: kube-scheduler has to write it."""
    conditional: bool = True
    """A clear is refused where the claim changed since it was read."""
    reads_pod: bool = True
    """Before a claim is taken from a pod, the API server says that the pod is not bound."""
    parts: bool = True
    """A claim that the pod has reserved loses that entry first, and is cleared SETTLE_S later."""
    settles: bool = True
    """An allocation elsewhere is written once attempts from before are over (SETTLE_S)."""
    fence: bool = True
    """Writes of a leader that was replaced are refused (D22)."""
    repairs: bool = True
    """A pod bound away from its claim gets it allocated where it is."""


def bound_away(side: Side) -> bool:
    """The pod is bound to a node on which its claim is not allocated."""
    return side.bound is not None and side.claim.node != side.bound


def taken(side: Side, leader: int) -> frozenset[int]:
    """Nodes whose GPU a claim has, for the leader: by its cache, or by a write under way."""
    nodes = {side.cache.claim.node}
    if side.write is not None and side.write.leader == leader:
        nodes.add(side.write.result.node)
    return frozenset(node for node in nodes if node is not None)


def steps(side: Side, leader: int, others: frozenset[int], protocol: Protocol) -> Iterator[Side]:
    """Every state of a pod that one step leads to; `others` are nodes that the other claim has."""
    yield from _scheduler(side)
    yield from _landed(side, leader, protocol)
    yield from _watched(side)
    if side.write is None:
        free = tuple(node for node in NODES if node not in others)
        for result in _results(side, free, protocol):
            yield side._replace(write=Write(result, side.cache.fresh, leader))


def _written(side: Side, claim: Claim) -> Side:
    """A write: every copy of the claim is one of an older version now."""
    attempt = side.attempt
    return side._replace(
        claim=claim,
        cache=side.cache._replace(fresh=False),
        scheduler=side.scheduler._replace(fresh=False),
        write=side.write._replace(fresh=False) if side.write else None,
        attempt=attempt._replace(copy=attempt.copy._replace(fresh=False)) if attempt else None,
    )


def _scheduler(side: Side) -> Iterator[Side]:
    if side.attempt is not None:
        yield from _attempt(side, side.attempt)
    elif side.bound is None and side.scheduler.claim.node is not None:
        yield side._replace(attempt=Attempt(side.scheduler.claim.node, "filtered", side.scheduler))


def _attempt(side: Side, attempt: Attempt) -> Iterator[Side]:
    if attempt.step == "filtered" and attempt.copy.claim.reserved:
        yield side._replace(attempt=attempt._replace(step="bindable"))
    elif attempt.step in {"filtered", "reading"}:
        yield from _reserve(side, attempt)
    else:
        yield side._replace(bound=attempt.node, attempt=None)
        unreserved = side.claim._replace(reserved=False)
        changed = side if unreserved == side.claim else _written(side, unreserved)
        yield changed._replace(attempt=None)


def _reserve(side: Side, attempt: Attempt) -> Iterator[Side]:
    """PreBind's update; after a conflict the claim is read, by a request of its own."""
    if not attempt.copy.fresh:
        if side.claim.node is None:
            yield side._replace(attempt=None)
        else:
            yield side._replace(attempt=Attempt(attempt.node, "reading", Copy(side.claim)))
    elif attempt.copy.claim.reserved:
        yield side._replace(attempt=None)  # two entries of one uid are refused
    else:
        changed = _written(side, side.claim._replace(reserved=True))
        yield changed._replace(attempt=Attempt(attempt.node, "bindable", Copy(changed.claim)))


def _landed(side: Side, leader: int, protocol: Protocol) -> Iterator[Side]:
    """The controller's request reaches the API server; the leader's cache takes the answer."""
    if side.write is None:
        return
    ours = side.write.leader == leader
    clears = side.write.result.node is None
    stale = not side.write.fresh and (protocol.conditional or not clears)
    done = side._replace(write=None)
    if stale or (protocol.fence and not ours):
        yield done
    else:
        written = _written(done, side.write.result)
        yield written._replace(cache=Copy(written.claim)) if ours else written


def _watched(side: Side) -> Iterator[Side]:
    """A watch brings the present version to a cache."""
    current = Copy(side.claim)
    if side.cache != current:
        yield side._replace(cache=current)
    if side.scheduler != current:
        yield side._replace(scheduler=current)
    if side.bound is not None and not side.sees_bound:
        yield side._replace(sees_bound=True)


def restarted(side: Side) -> Side:
    """A new leader lists all anew; what the old one sent may still be under way."""
    return side._replace(cache=Copy(side.claim), sees_bound=side.bound is not None)


def _results(side: Side, free: tuple[int, ...], protocol: Protocol) -> Iterator[Claim]:
    """Yield what the leader may write for a pod, by what its caches say."""
    claim = side.cache.claim
    if side.sees_bound and side.bound is not None:
        if protocol.repairs:
            yield from _repaired(side.bound, claim, free)
    elif claim.node is None:
        if not protocol.settles or _settled(side):
            for node in free:
                yield Claim(node, hold=True, reserved=not protocol.hold_alone)
    elif claim.hold and not (protocol.reads_pod and side.bound is not None):
        if claim.reserved and protocol.parts:
            yield claim._replace(reserved=False)
        elif not protocol.parts or _parted(side):
            yield Claim()


def _repaired(bound: int, claim: Claim, free: tuple[int, ...]) -> Iterator[Claim]:
    if claim.node is not None and claim.node != bound:
        yield Claim()
    elif claim.node is None and bound in free:
        yield Claim(bound, reserved=True)
    elif claim.node == bound and claim.hold and claim.reserved:
        yield claim._replace(hold=False)


def _parted(side: Side) -> bool:
    """SETTLE_S after the pod's entry went: no attempt counts on it, the watch has told."""
    attempt = side.attempt
    return not side.scheduler.claim.reserved and (
        attempt is None or not attempt.copy.claim.reserved
    )


def _settled(side: Side) -> bool:
    """SETTLE_S after a release: attempts that saw the allocation are over, the watch has told."""
    return side.attempt is None and side.scheduler.claim.node is None


@dataclass(frozen=True)
class Explored:
    """The states that a protocol reaches: how many, and how many of them are bad."""

    states: int
    bound_away: int
    given_twice: int
    unrepaired: int
    """Pods bound away whose claim no steps of the controller bring to them, the node being free."""


def _alone(side: Side, protocol: Protocol) -> Iterator[Side]:
    """Steps of the controller, its watches and its requests."""
    leader = side.write.leader if side.write is not None else 0
    yield from _landed(side, leader, protocol)
    yield from _watched(side)
    if side.write is None:
        for result in _results(side, NODES, protocol):
            yield side._replace(write=Write(result, side.cache.fresh, leader))


class Explorer:
    """Explores pairs of sides; a pair and its mirror are one state."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._numbers: dict[Side, int] = {}
        self._sides: list[Side] = []
        self._steps: dict[tuple[int, int, frozenset[int]], tuple[int, ...]] = {}

    def explore(self) -> Explored:
        """Visit every reachable state once."""
        begin = (0, self._number(Side()), self._number(Side()))
        met = {begin}
        ahead = deque([begin])
        away = twice = 0
        while ahead:
            state = ahead.popleft()
            pair = (self._sides[state[1]], self._sides[state[2]])
            away += any(bound_away(side) for side in pair)
            twice += pair[0].claim.node is not None and pair[0].claim.node == pair[1].claim.node
            for successor in self._successors(state):
                if successor not in met:
                    met.add(successor)
                    ahead.append(successor)
        unrepaired = sum(not self._repaired(side) for side in self._sides if bound_away(side))
        return Explored(len(met), away, twice, unrepaired)

    def _repaired(self, side: Side) -> bool:
        """Tell whether the controller alone brings a pod's claim to it, with its node free."""
        met = {side}
        ahead = deque([side])
        while ahead:
            current = ahead.popleft()
            if not bound_away(current):
                return True
            for successor in _alone(current, self._protocol):
                if successor not in met:
                    met.add(successor)
                    ahead.append(successor)
        return False

    def _successors(self, state: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
        leader, first, second = state
        for changed in self._changed(first, leader, second):
            yield _ordered(leader, changed, second)
        for changed in self._changed(second, leader, first):
            yield _ordered(leader, changed, first)
        if leader == 0:
            anew = (self._number(restarted(self._sides[side])) for side in (first, second))
            yield _ordered(1, *anew)

    def _changed(self, side: int, leader: int, other: int) -> tuple[int, ...]:
        others = taken(self._sides[other], leader)
        key = (side, leader, others)
        if key not in self._steps:
            changed = steps(self._sides[side], leader, others, self._protocol)
            self._steps[key] = tuple({self._number(successor) for successor in changed})
        return self._steps[key]

    def _number(self, side: Side) -> int:
        if side not in self._numbers:
            self._numbers[side] = len(self._sides)
            self._sides.append(side)
        return self._numbers[side]


def _ordered(leader: int, first: int, second: int) -> tuple[int, int, int]:
    return (leader, first, second) if first <= second else (leader, second, first)

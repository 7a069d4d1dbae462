"""Placement policies from elsewhere on a plain model of the trace, each a score a node and GPU.

FGD as its authors' simulator decides (hkust-adsl/kubernetes-scheduler-simulator): the score
floor(100 sigmoid(fallen / 1000)), the lowest name among equals. Each node is scored again when it
changed.
"""

import heapq
import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.placement import openb

Score = Callable[["State", openb.Pod, "State"], float]


class State(NamedTuple):
    """A node now: what is left of it; GPUs in thousandths."""

    model: str
    cpu: int
    memory: int
    left: tuple[int, ...]


def options(state: State, pod: openb.Pod) -> list[State]:
    """What a node may be once it has the pod."""
    if pod.cpu > state.cpu or pod.memory > state.memory or _wrong(state.model, pod):
        return []
    rest = state._replace(cpu=state.cpu - pod.cpu, memory=state.memory - pod.memory)
    if not pod.gpus:
        return [rest]
    if pod.milli < openb.FULL:
        found: dict[int, State] = {}
        for at, left in enumerate(state.left):
            if left >= pod.milli and left not in found:
                cards = (*state.left[:at], left - pod.milli, *state.left[at + 1 :])
                found[left] = rest._replace(left=cards)
        return [*found.values()]
    idle = [at for at, left in enumerate(state.left) if left == openb.FULL][: pod.gpus]
    if len(idle) < pod.gpus:
        return []
    cards = tuple(0 if at in idle else left for at, left in enumerate(state.left))
    return [rest._replace(left=cards)]


def _wrong(model: str, pod: openb.Pod) -> bool:
    return bool(pod.models) and model not in pod.models


class Fgd:
    """The fragmentation gradient."""

    def __init__(self, usual: Sequence[tuple[openb.Pod, float]]) -> None:
        self._usual = usual
        self._known: dict[tuple[str, int, tuple[int, ...]], float] = {}
        self._cpus = sorted({shape.cpu for shape, _ in usual})

    def __call__(self, before: State, _pod: openb.Pod, after: State) -> float:
        """Lower is better."""
        fallen = self._of(before) - self._of(after)
        return -math.floor(100 / (1 + math.exp(-fallen / openb.FULL)))

    def of(self, state: State) -> float:
        """Idle thousandths that usual shapes cannot use."""
        idle = sum(state.left)
        return sum(part * self._unused(state, shape, idle) for shape, part in self._usual)

    def _of(self, state: State) -> float:
        step = sum(1 for cpu in self._cpus if cpu <= state.cpu)
        key = state.model, step, tuple(sorted(state.left))
        if key not in self._known:
            self._known[key] = self.of(state)
        return self._known[key]

    @staticmethod
    def _unused(state: State, shape: openb.Pod, idle: int) -> int:
        if not shape.gpus or shape.cpu > state.cpu or _wrong(state.model, shape):
            return idle
        fitting = [left for left in state.left if left >= shape.milli]
        return idle - sum(fitting) if len(fitting) >= shape.gpus else idle


def best_fit(before: State, _pod: openb.Pod, after: State) -> float:
    """The least left: of the card, then of the node."""
    changed = [a for a, b in zip(after.left, before.left, strict=True) if a != b]
    return min(changed, default=0) * 100 + sum(after.left) / 100


def first_fit(_before: State, _pod: openb.Pod, _after: State) -> float:
    """Whatever comes first."""
    return 0


def replay(trace: openb.Trace, arriving: Sequence[openb.Pod], score: Score) -> list[int]:
    """GPU thousandths in use after each arrival."""
    nodes = [State(n.model, n.cpu, n.memory, (openb.FULL,) * n.gpus) for n in trace.nodes]
    boards: dict[openb.Pod, _Board] = {}
    log: list[int] = []
    used, out = 0, []
    for pod in arriving:
        board = boards.setdefault(pod, _Board(pod, score))
        found = board.best(nodes, log)
        if found is not None:
            at, after = found
            nodes[at] = after
            log.append(at)
            used += pod.demand
        out.append(used)
    return out


class _Board:
    """Of one shape: the rank of every node, renewed where nodes changed."""

    def __init__(self, pod: openb.Pod, score: Score) -> None:
        self._pod = pod
        self._score = score
        self._seen = -1
        self._ranks: dict[int, tuple[float, int]] = {}
        self._after: dict[int, State] = {}
        self._heap: list[tuple[float, int]] = []

    def best(self, nodes: list[State], log: list[int]) -> tuple[int, State] | None:
        changed = range(len(nodes)) if self._seen < 0 else {*log[self._seen :]}
        self._seen = len(log)
        for at in changed:
            self._rank(at, nodes[at])
        while self._heap:
            rank = self._heap[0]
            if self._ranks.get(rank[1]) == rank:
                return rank[1], self._after[rank[1]]
            heapq.heappop(self._heap)
        return None

    def _rank(self, at: int, state: State) -> None:
        self._ranks.pop(at, None)
        scored = [(self._score(state, self._pod, one), one) for one in options(state, self._pod)]
        if scored:
            score, self._after[at] = min(scored, key=lambda found: found[0])
            self._ranks[at] = score, at
            heapq.heappush(self._heap, self._ranks[at])


def at_random(trace: openb.Trace, arriving: Sequence[openb.Pod], seed: int) -> list[int]:
    """GPU thousandths in use after each arrival, each pod anywhere it fits."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    nodes = [State(n.model, n.cpu, n.memory, (openb.FULL,) * n.gpus) for n in trace.nodes]
    used, out = 0, []
    for pod in arriving:
        order = [*range(len(nodes))]
        draw.shuffle(order)
        for at in order:
            found = options(nodes[at], pod)
            if found:
                nodes[at] = draw.choice(found)
                used += pod.demand
                break
        out.append(used)
    return out

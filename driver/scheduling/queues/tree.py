"""Queue tree: accepted queues, parents, and the queues of pods. Pure.

A queue that conflicts with others is reported and left out: all others stay as they are. Of two
that conflict the one created later is left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from driver import names
from driver.resources import queues
from driver.resources.core import pods
from driver.scheduling.queues import quota
from driver.scheduling.queues.messages import format_bound

NO_QUEUE = ""
"""Leaf of pods without a queue: weight 1 beside the topmost queues, nothing deserved."""
IMPLICIT_QUEUE = queues.Queue(NO_QUEUE)


@dataclass(frozen=True, slots=True)
class QueueFault:
    """Fault of a queue that is not accepted: the field, the problem and what is expected."""

    path: str
    problem: str
    expected: str = ""

    def __str__(self) -> str:
        """`spec.parent: queue research does not exist`."""
        tail = f"; expected {self.expected}" if self.expected else ""
        return f"{self.path}: {self.problem}{tail}"


@dataclass(frozen=True)
class QueueTree:
    """`accepted` are the queues that count, with the implicit one; `children[None]` the topmost."""

    accepted: Mapping[str, queues.Queue]
    children: Mapping[str | None, Sequence[str]]
    deserved: Mapping[str, queues.Amounts]
    faults: Mapping[str, QueueFault]
    _claims: Mapping[str, Sequence["_Membership"]]

    @property
    def leaves(self) -> tuple[str, ...]:
        """Every queue that pods may belong to, the implicit one included."""
        return tuple(name for name in self.accepted if not self.children.get(name))

    @property
    def is_implicit_only(self) -> bool:
        """True if there is no queue but the implicit one."""
        return len(self.accepted) == 1

    def queue_or_implicit(self, name: str) -> str:
        """Return a leaf by its name; the implicit one for any other name."""
        return name if name in self.accepted and not self.children.get(name) else NO_QUEUE

    def path(self, queue: str) -> tuple[str, ...]:
        """Return the queues from the topmost down to a queue."""
        path_names = [queue if queue in self.accepted else NO_QUEUE]
        while parent := self.accepted[path_names[-1]].parent:
            path_names.append(parent)
        return tuple(reversed(path_names))

    def bottom_up(self) -> Iterator[str]:
        """Yield every queue, children before their parents."""
        yield from reversed([*self.top_down()])

    def top_down(self) -> Iterator[str]:
        """Yield every queue, parents before their children."""
        path_names = [*self.children[None]]
        for name in path_names:
            yield name
            path_names += self.children.get(name, ())

    def pod_queue(self, pod: pods.Pod) -> str:
        """Return the queue of a pod: the one in its label if that admits it, or by `members`.

        A label with another name than a leaf's, or whose queue does not admit the pod's namespace,
        does not count.
        """
        named = pod.labels.get(names.QUEUE_LABEL, "")
        if (
            named
            and self.queue_or_implicit(named) == named
            and _admits_namespace(self.accepted[named], pod.namespace)
        ):
            return named
        claims = (*self._claims.get(pod.namespace, ()), *self._claims.get("", ()))
        best = min(
            (claim for claim in claims if claim.selects(pod)), key=_Membership.rank, default=None
        )
        return best.queue if best else NO_QUEUE


@dataclass(frozen=True, slots=True)
class _Membership:
    """Selection of pods of a namespace by labels, for a queue."""

    queue: str
    member: queues.Member

    def rank(self) -> tuple[int, bool, str]:
        """Return the sort key: the most labels first, then with a namespace, then by name."""
        return -len(self.member.labels), not self.member.namespace, self.queue

    def selects(self, pod: pods.Pod) -> bool:
        return self.member.labels.items() <= pod.labels.items()


def _admits_namespace(queue: queues.Queue, namespace: str) -> bool:
    return not queue.members or any(member.namespace in {"", namespace} for member in queue.members)


def build_tree(all_queues: Iterable[queues.Queue]) -> QueueTree:
    """Return the tree of all queues without conflicts."""
    by_name = {queue.name: queue for queue in sorted(all_queues, key=_creation_order)}
    faults = _find_cycles(by_name)
    for queue in by_name.values():
        fault = _spec_fault(queue, by_name)
        if fault is not None:
            faults.setdefault(queue.name, fault)
    deserved = _settle_deserved(by_name, faults)
    accepted = {name: queue for name, queue in by_name.items() if name not in faults}
    accepted[NO_QUEUE] = IMPLICIT_QUEUE
    deserved[NO_QUEUE] = IMPLICIT_QUEUE.deserved
    claims: dict[str, list[_Membership]] = {}
    children = _children(accepted)
    for name in accepted.keys() - children.keys():
        for member in accepted[name].members:
            claims.setdefault(member.namespace, []).append(_Membership(name, member))
    sorted_faults = {name: faults[name] for name in sorted(faults)}
    ordered = {name: accepted[name] for name in sorted(accepted)}
    return QueueTree(ordered, children, deserved, sorted_faults, claims)


def _creation_order(queue: queues.Queue) -> tuple[str, str]:
    return queue.created, queue.name


def _children(by_name: Mapping[str, queues.Queue]) -> dict[str | None, Sequence[str]]:
    children: dict[str | None, list[str]] = {None: []}
    for name, queue in sorted(by_name.items()):
        children.setdefault(queue.parent or None, []).append(name)
    return {**children}


def _find_cycles(by_name: Mapping[str, queues.Queue]) -> dict[str, QueueFault]:
    """Return a fault for every queue that is its own ancestor."""
    faults: dict[str, QueueFault] = {}
    for start in by_name:
        path = [start]
        while (parent := by_name[path[-1]].parent) in by_name and parent not in path:
            path.append(parent)
        if parent == start:
            cycle = " -> ".join([*path, start])
            faults[start] = QueueFault("spec.parent", f"the queue is its own ancestor: {cycle}")
    return faults


def _spec_fault(queue: queues.Queue, by_name: Mapping[str, queues.Queue]) -> QueueFault | None:
    """Return a fault of the queue itself, whatever becomes of others."""
    if queue.parent and queue.parent not in by_name:
        return QueueFault("spec.parent", f"queue {queue.parent} does not exist")
    if queue.parent and by_name[queue.parent].members:
        problem = f"queue {queue.parent} has members: pods belong to queues without children"
        return QueueFault("spec.parent", problem, "a queue without members")
    for bound in quota.bounds(queue.limit):
        least = next((b.limit for b in quota.bounds(queue.deserved) if b[:2] == bound[:2]), 0)
        if bound.limit < least:
            problem = f"{format_bound(bound)} is less than the {format_bound(bound, least)}"
            return QueueFault(
                f"spec.limit.{bound.field}", f"{problem} deserved", "at least as much"
            )
    return None


def _settle_deserved(
    by_name: Mapping[str, queues.Queue], faults: dict[str, QueueFault]
) -> dict[str, queues.Amounts]:
    """Return the deserved amounts, including children; add faults found on the way.

    A parent deserves at least what its children do together.
    """
    _propagate_faults(by_name, faults)
    deserved: dict[str, queues.Amounts] = {}
    accepted = {name: queue for name, queue in by_name.items() if name not in faults}
    children = _children(accepted)
    ready = [*children[None]]
    for name in ready:
        ready += children.get(name, ())
    for name in reversed(ready):
        # In creation order: the first that exceeds the limit is left out.
        taken = quota.sum_amounts(())
        for child in sorted(
            children.get(name, ()), key=lambda queue: _creation_order(by_name[queue])
        ):
            more = quota.sum_amounts((taken, deserved[child]))
            fault = _limit_fault(by_name[name], by_name[child], more)
            if fault is None:
                taken = more
            else:
                faults[child] = fault
        deserved[name] = quota.maximum(by_name[name].deserved, taken)
    _propagate_faults(by_name, faults)
    return {name: queue for name, queue in deserved.items() if name not in faults}


def _limit_fault(
    parent: queues.Queue, child: queues.Queue, more: queues.Amounts
) -> QueueFault | None:
    requested = {(bound.field, bound.kind): bound.limit for bound in quota.bounds(more)}
    for bound in quota.bounds(quota.effective_limit(parent)):
        amount = requested.get((bound.field, bound.kind), 0)
        if amount > bound.limit:
            return QueueFault(
                f"spec.deserved.{bound.field}",
                f"with the queues beside {child.name} that is {format_bound(bound, amount)} "
                f"deserved, and queue {parent.name} has {format_bound(bound)} at most",
                "together no more than the parent's limit",
            )
    return None


def _propagate_faults(by_name: Mapping[str, queues.Queue], faults: dict[str, QueueFault]) -> None:
    """Add faults to the children of queues that are not accepted."""
    changed = True
    while changed:
        changed = False
        for name, queue in by_name.items():
            if name not in faults and queue.parent in faults:
                problem = f"queue {queue.parent} is not accepted ({faults[queue.parent].path})"
                faults[name] = QueueFault("spec.parent", problem)
                changed = True

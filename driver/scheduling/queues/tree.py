"""The tree of queues: which are accepted, who is whose child, and whose pods are whose. Pure.

What a queue says that does not go with the others is told, and the queue is left out: all else
stays as it is. Of two that do not go together the later made one is left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from driver import names
from driver.resources import queues
from driver.resources.core import pods
from driver.scheduling.queues import format as words
from driver.scheduling.queues import quota

NO_QUEUE = ""
"""The leaf of pods that no queue takes: weight 1 beside the topmost queues, nothing deserved."""
IMPLICIT_QUEUE = queues.Queue(NO_QUEUE)


@dataclass(frozen=True, slots=True)
class QueueFault:
    """Why a queue is not accepted: the field, what is wrong there and what would be right."""

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
        """Whether there is no queue but the implicit one."""
        return len(self.accepted) == 1

    def queue_or_implicit(self, name: str) -> str:
        """A leaf by its name; the implicit one for what is no leaf (any more)."""
        return name if name in self.accepted and not self.children.get(name) else NO_QUEUE

    def path(self, leaf: str) -> tuple[str, ...]:
        """From the topmost queue down to a queue."""
        found = [leaf if leaf in self.accepted else NO_QUEUE]
        while parent := self.accepted[found[-1]].parent:
            found.append(parent)
        return tuple(reversed(found))

    def bottom_up(self) -> Iterator[str]:
        """Every queue, children before their parents."""
        yield from reversed([*self.top_down()])

    def top_down(self) -> Iterator[str]:
        """Every queue, parents before their children."""
        found = [*self.children[None]]
        for name in found:
            yield name
            found += self.children.get(name, ())

    def pod_queue(self, pod: pods.Pod) -> str:
        """The queue of a pod: the one that its label names and that takes it, or by `members`.

        A label that names no leaf, or one that does not take the pod's namespace, does not count.
        """
        named = pod.labels.get(names.QUEUE_LABEL, "")
        if (
            named
            and self.queue_or_implicit(named) == named
            and _admits_namespace(self.accepted[named], pod.namespace)
        ):
            return named
        claims = (*self._claims.get(pod.namespace, ()), *self._claims.get("", ()))
        best = min((one for one in claims if one.selects(pod)), key=_Membership.rank, default=None)
        return best.queue if best else NO_QUEUE


@dataclass(frozen=True, slots=True)
class _Membership:
    """That a queue takes pods of a namespace with some labels."""

    queue: str
    member: queues.Member

    def rank(self) -> tuple[int, bool, str]:
        """First the one with the most labels, then with a namespace, then by name."""
        return -len(self.member.labels), not self.member.namespace, self.queue

    def selects(self, pod: pods.Pod) -> bool:
        return self.member.labels.items() <= pod.labels.items()


def _admits_namespace(queue: queues.Queue, namespace: str) -> bool:
    return not queue.members or any(one.namespace in {"", namespace} for one in queue.members)


def build_tree(found: Iterable[queues.Queue]) -> QueueTree:
    """The tree of all queues that go together."""
    known = {one.name: one for one in sorted(found, key=_creation_order)}
    faults = _find_cycles(known)
    for one in known.values():
        wrong = _spec_fault(one, known)
        if wrong is not None:
            faults.setdefault(one.name, wrong)
    deserved = _settle_deserved(known, faults)
    accepted = {name: one for name, one in known.items() if name not in faults}
    accepted[NO_QUEUE] = IMPLICIT_QUEUE
    deserved[NO_QUEUE] = IMPLICIT_QUEUE.deserved
    claims: dict[str, list[_Membership]] = {}
    children = _children(accepted)
    for name in accepted.keys() - children.keys():
        for member in accepted[name].members:
            claims.setdefault(member.namespace, []).append(_Membership(name, member))
    told = {name: faults[name] for name in sorted(faults)}
    ordered = {name: accepted[name] for name in sorted(accepted)}
    return QueueTree(ordered, children, deserved, told, claims)


def _creation_order(one: queues.Queue) -> tuple[str, str]:
    return one.created, one.name


def _children(found: Mapping[str, queues.Queue]) -> dict[str | None, Sequence[str]]:
    made: dict[str | None, list[str]] = {None: []}
    for name, one in sorted(found.items()):
        made.setdefault(one.parent or None, []).append(name)
    return {**made}


def _find_cycles(known: Mapping[str, queues.Queue]) -> dict[str, QueueFault]:
    """Every queue that is its own ancestor."""
    found: dict[str, QueueFault] = {}
    for start in known:
        way = [start]
        while (parent := known[way[-1]].parent) in known and parent not in way:
            way.append(parent)
        if parent == start:
            told = " -> ".join([*way, start])
            found[start] = QueueFault("spec.parent", f"the queue is its own ancestor: {told}")
    return found


def _spec_fault(one: queues.Queue, known: Mapping[str, queues.Queue]) -> QueueFault | None:
    """What is wrong whatever becomes of other queues."""
    if one.parent and one.parent not in known:
        return QueueFault("spec.parent", f"queue {one.parent} does not exist")
    if one.parent and known[one.parent].members:
        told = f"queue {one.parent} has members: pods belong to queues without children"
        return QueueFault("spec.parent", told, "a queue without members")
    for bound in quota.bounds(one.limit):
        least = next((b.limit for b in quota.bounds(one.deserved) if b[:2] == bound[:2]), 0)
        if bound.limit < least:
            told = (
                f"{words.format_bound(bound)} is less than the {words.format_bound(bound, least)}"
            )
            return QueueFault(f"spec.limit.{bound.field}", f"{told} deserved", "at least as much")
    return None


def _settle_deserved(
    known: Mapping[str, queues.Queue], faults: dict[str, QueueFault]
) -> dict[str, queues.Amounts]:
    """What each queue deserves, its children included; adds what is found wrong to `faults`.

    A parent deserves at least what its children do together.
    """
    _propagate_faults(known, faults)
    deserved: dict[str, queues.Amounts] = {}
    standing = {name: one for name, one in known.items() if name not in faults}
    children = _children(standing)
    ready = [*children[None]]
    for name in ready:
        ready += children.get(name, ())
    for name in reversed(ready):
        # In the order in which they were made: the first that is too much is left out.
        taken = quota.sum_amounts(())
        for child in sorted(children.get(name, ()), key=lambda one: _creation_order(known[one])):
            more = quota.sum_amounts((taken, deserved[child]))
            wrong = _limit_fault(known[name], known[child], more)
            if wrong is None:
                taken = more
            else:
                faults[child] = wrong
        deserved[name] = quota.maximum(known[name].deserved, taken)
    _propagate_faults(known, faults)
    return {name: one for name, one in deserved.items() if name not in faults}


def _limit_fault(
    parent: queues.Queue, child: queues.Queue, more: queues.Amounts
) -> QueueFault | None:
    there = {(one.field, one.product): one.limit for one in quota.bounds(more)}
    for bound in quota.bounds(quota.effective_limit(parent)):
        asked = there.get((bound.field, bound.product), 0)
        if asked > bound.limit:
            return QueueFault(
                f"spec.deserved.{bound.field}",
                f"with the queues beside {child.name} that is {words.format_bound(bound, asked)} "
                f"deserved, and queue {parent.name} has {words.format_bound(bound)} at most",
                "together no more than the parent's limit",
            )
    return None


def _propagate_faults(known: Mapping[str, queues.Queue], faults: dict[str, QueueFault]) -> None:
    """Children of a queue that is not accepted are not accepted."""
    changed = True
    while changed:
        changed = False
        for name, one in known.items():
            if name not in faults and one.parent in faults:
                told = f"queue {one.parent} is not accepted ({faults[one.parent].path})"
                faults[name] = QueueFault("spec.parent", told)
                changed = True

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
IMPLICIT = queues.Queue(NO_QUEUE)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a queue is not accepted: the field, what is wrong there and what would be right."""

    path: str
    problem: str
    expected: str = ""

    def __str__(self) -> str:
        """`spec.parent: queue research does not exist`."""
        tail = f"; expected {self.expected}" if self.expected else ""
        return f"{self.path}: {self.problem}{tail}"


@dataclass(frozen=True)
class Tree:
    """`accepted` are the queues that count, with the implicit one; `children[None]` the topmost."""

    accepted: Mapping[str, queues.Queue]
    children: Mapping[str | None, Sequence[str]]
    deserved: Mapping[str, queues.Amounts]
    faults: Mapping[str, Fault]
    _claims: Mapping[str, Sequence["_Claim"]]

    @property
    def leaves(self) -> tuple[str, ...]:
        """Every queue that pods may belong to, the implicit one included."""
        return tuple(name for name in self.accepted if not self.children.get(name))

    @property
    def is_plain(self) -> bool:
        """Whether there is no queue but the implicit one."""
        return len(self.accepted) == 1

    def leaf(self, name: str) -> str:
        """A leaf by its name; the implicit one for what is no leaf (any more)."""
        return name if name in self.accepted and not self.children.get(name) else NO_QUEUE

    def path(self, leaf: str) -> tuple[str, ...]:
        """From the topmost queue down to a queue."""
        found = [leaf if leaf in self.accepted else NO_QUEUE]
        while parent := self.accepted[found[-1]].parent:
            found.append(parent)
        return tuple(reversed(found))

    def upwards(self) -> Iterator[str]:
        """Every queue, children before their parents."""
        yield from reversed([*self.downwards()])

    def downwards(self) -> Iterator[str]:
        """Every queue, parents before their children."""
        found = [*self.children[None]]
        for name in found:
            yield name
            found += self.children.get(name, ())

    def leaf_of(self, pod: pods.Pod) -> str:
        """The queue of a pod: the one that its label names and that takes it, or by `members`.

        A label that names no leaf, or one that does not take the pod's namespace, does not count.
        """
        named = pod.labels.get(names.QUEUE_LABEL, "")
        if named and self.leaf(named) == named and _admits(self.accepted[named], pod.namespace):
            return named
        claims = (*self._claims.get(pod.namespace, ()), *self._claims.get("", ()))
        best = min((one for one in claims if one.takes(pod)), key=_Claim.rank, default=None)
        return best.queue if best else NO_QUEUE


@dataclass(frozen=True, slots=True)
class _Claim:
    """That a queue takes pods of a namespace with some labels."""

    queue: str
    member: queues.Member

    def rank(self) -> tuple[int, bool, str]:
        """First the one with the most labels, then with a namespace, then by name."""
        return -len(self.member.labels), not self.member.namespace, self.queue

    def takes(self, pod: pods.Pod) -> bool:
        return self.member.labels.items() <= pod.labels.items()


def _admits(queue: queues.Queue, namespace: str) -> bool:
    return not queue.members or any(one.namespace in {"", namespace} for one in queue.members)


def build(found: Iterable[queues.Queue]) -> Tree:
    """The tree of all queues that go together."""
    known = {one.name: one for one in sorted(found, key=_age)}
    faults = _circles(known)
    for one in known.values():
        wrong = _own_fault(one, known)
        if wrong is not None:
            faults.setdefault(one.name, wrong)
    deserved = _settle(known, faults)
    accepted = {name: one for name, one in known.items() if name not in faults}
    accepted[NO_QUEUE] = IMPLICIT
    deserved[NO_QUEUE] = IMPLICIT.deserved
    claims: dict[str, list[_Claim]] = {}
    children = _children(accepted)
    for name in accepted.keys() - children.keys():
        for member in accepted[name].members:
            claims.setdefault(member.namespace, []).append(_Claim(name, member))
    told = {name: faults[name] for name in sorted(faults)}
    ordered = {name: accepted[name] for name in sorted(accepted)}
    return Tree(ordered, children, deserved, told, claims)


def _age(one: queues.Queue) -> tuple[str, str]:
    return one.created, one.name


def _children(found: Mapping[str, queues.Queue]) -> dict[str | None, Sequence[str]]:
    made: dict[str | None, list[str]] = {None: []}
    for name, one in sorted(found.items()):
        made.setdefault(one.parent or None, []).append(name)
    return {**made}


def _circles(known: Mapping[str, queues.Queue]) -> dict[str, Fault]:
    """Every queue that is its own ancestor."""
    found: dict[str, Fault] = {}
    for start in known:
        way = [start]
        while (parent := known[way[-1]].parent) in known and parent not in way:
            way.append(parent)
        if parent == start:
            told = " -> ".join([*way, start])
            found[start] = Fault("spec.parent", f"the queue is its own ancestor: {told}")
    return found


def _own_fault(one: queues.Queue, known: Mapping[str, queues.Queue]) -> Fault | None:
    """What is wrong whatever becomes of other queues."""
    if one.parent and one.parent not in known:
        return Fault("spec.parent", f"queue {one.parent} does not exist")
    if one.parent and known[one.parent].members:
        told = f"queue {one.parent} has members: pods belong to queues without children"
        return Fault("spec.parent", told, "a queue without members")
    for bound in quota.bounds(one.limit):
        least = next((b.most for b in quota.bounds(one.deserved) if b[:2] == bound[:2]), 0)
        if bound.most < least:
            told = f"{words.of_bound(bound)} is less than the {words.of_bound(bound, least)}"
            return Fault(f"spec.limit.{bound.field}", f"{told} deserved", "at least as much")
    return None


def _settle(
    known: Mapping[str, queues.Queue], faults: dict[str, Fault]
) -> dict[str, queues.Amounts]:
    """What each queue deserves, its children included; adds what is found wrong to `faults`.

    A parent deserves at least what its children do together.
    """
    _pass_down(known, faults)
    deserved: dict[str, queues.Amounts] = {}
    standing = {name: one for name, one in known.items() if name not in faults}
    children = _children(standing)
    ready = [*children[None]]
    for name in ready:
        ready += children.get(name, ())
    for name in reversed(ready):
        # In the order in which they were made: the first that is too much is left out.
        taken = quota.together(())
        for child in sorted(children.get(name, ()), key=lambda one: _age(known[one])):
            more = quota.together((taken, deserved[child]))
            wrong = _beyond(known[name], known[child], more)
            if wrong is None:
                taken = more
            else:
                faults[child] = wrong
        deserved[name] = quota.at_least(known[name].deserved, taken)
    _pass_down(known, faults)
    return {name: one for name, one in deserved.items() if name not in faults}


def _beyond(parent: queues.Queue, child: queues.Queue, more: queues.Amounts) -> Fault | None:
    there = {(one.field, one.product): one.most for one in quota.bounds(more)}
    for bound in quota.bounds(quota.limit(parent)):
        asked = there.get((bound.field, bound.product), 0)
        if asked > bound.most:
            return Fault(
                f"spec.deserved.{bound.field}",
                f"with the queues beside {child.name} that is {words.of_bound(bound, asked)} "
                f"deserved, and queue {parent.name} has {words.of_bound(bound)} at most",
                "together no more than the parent's limit",
            )
    return None


def _pass_down(known: Mapping[str, queues.Queue], faults: dict[str, Fault]) -> None:
    """Children of a queue that is not accepted are not accepted."""
    changed = True
    while changed:
        changed = False
        for name, one in known.items():
            if name not in faults and one.parent in faults:
                told = f"queue {one.parent} is not accepted ({faults[one.parent].path})"
                faults[name] = Fault("spec.parent", told)
                changed = True

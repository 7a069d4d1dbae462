"""What was read of a cluster, and what is looked up in it again and again. Pure.

A `Seen` never changes. One made after another takes over what did not change: of a thousand nodes
only those whose slices are other objects are read anew.
"""

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from driver import ids
from driver.resources import queues, reservations
from driver.resources.core import nodes, pods
from driver.resources.dra import claims as resource_claims
from driver.resources.dra import device_classes, slices, taint_rules
from driver.resources.dra import pools as dra_pools
from driver.scheduling.lifecycle import backfill_plan
from driver.scheduling.provisioning import shape_status
from driver.scheduling.queues import tree
from driver.scheduling.reports.documents import slots

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Objects:
    """Parsed objects by key. `missing`: kinds that could not be read, and why, in words.

    `offer` are the kinds of node that can be asked for; None where none are, as far as is known.
    `plan` is what backfill keeps; None where nothing is, or the reader is not the controller.
    """

    driver: str
    nodes: Mapping[ids.Key, nodes.Node]
    slices: Mapping[ids.Key, slices.Slice]
    classes: Mapping[ids.Key, device_classes.DeviceClass]
    claims: Mapping[ids.Key, resource_claims.Claim]
    pods: Mapping[ids.Key, pods.Pod]
    rules: Mapping[ids.Key, taint_rules.TaintRule]
    queues: Mapping[ids.Key, queues.Queue]
    reservations: Mapping[ids.Key, reservations.Reservation]
    missing: tuple[str, ...] = ()
    offer: shape_status.ShapeStatus | None = None
    plan: backfill_plan.BackfillPlan | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """A result of a claim's allocation that is a device of ours."""

    claim: resource_claims.Claim
    result: resource_claims.Result


@dataclass(frozen=True, slots=True)
class Promised:
    """A device, or a share of one, that a Reservation keeps."""

    reservation: reservations.Reservation
    held: reservations.HeldDevice


class Seen:
    """Lookups are made when they are first asked for. Any thread may read it."""

    def __init__(self, objects: Objects, before: "Seen | None" = None) -> None:
        self.objects = objects
        self._made: dict[Hashable, Any] = {}
        self._before = before.pools if before is not None else {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is made of it under a key, made when it is first asked for."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    @functools.cached_property
    def pools(self) -> Mapping[ids.NodeName, slots.Pool]:
        """What each node publishes of ours, by node in order of name."""
        ours = (one for one in self.objects.slices.values() if one.driver == self.objects.driver)
        laid = taint_rules.apply_rules(ours, self.objects.rules.values())
        made: dict[ids.NodeName, slots.Pool] = {}
        for one in dra_pools.group_pools(laid):
            node = one.slices[0].node
            if node is not None:
                known = self._before.get(node)
                made[node] = known if known and known.is_of(one) else slots.Pool(one)
        return dict(sorted(made.items()))

    @functools.cached_property
    def taken(self) -> Mapping[tuple[str, str], tuple[Taken, ...]]:
        """Who has devices of ours, by pool and GPU, the oldest first."""
        found: dict[tuple[str, str], list[Taken]] = {}
        for claim in self.objects.claims.values():
            for result in self.ours(claim):
                found.setdefault(self._place(result.device), []).append(Taken(claim, result))
        return {key: tuple(sorted(several, key=_age)) for key, several in found.items()}

    @functools.cached_property
    def promised(self) -> Mapping[tuple[str, str], tuple[Promised, ...]]:
        """What Reservations keep, by pool and GPU."""
        found: dict[tuple[str, str], list[Promised]] = {}
        for one in self.objects.reservations.values():
            for held in one.held if one.phase == "Held" else ():
                found.setdefault(self._place(held.device), []).append(Promised(one, held))
        return {key: tuple(several) for key, several in found.items()}

    @functools.cached_property
    def planned(self) -> Mapping[tuple[str, str], tuple[reservations.HeldDevice, ...]]:
        """Devices that backfill keeps for the first in line, by pool and GPU."""
        plan = self.objects.plan
        by_gpu: dict[tuple[str, str], list[reservations.HeldDevice]] = {}
        for held in plan.devices if plan is not None else ():
            by_gpu.setdefault(self._place(held.device), []).append(held)
        return {key: tuple(several) for key, several in by_gpu.items()}

    @functools.cached_property
    def planned_queue(self) -> str:
        """The queue of the pod or gang that backfill keeps devices for; "" for none."""
        plan = self.objects.plan
        if plan is None:
            return ""
        if plan.kind == "pod":
            pod = self.objects.pods.get(plan.key)
            return self.queue_of(pod) if pod is not None else ""
        namespace, _, gang = plan.key.partition("/")
        members = (
            pod
            for _, pod in sorted(self.objects.pods.items())
            if (pod.namespace, pod.gang) == (namespace, gang)
        )
        return next(map(self.queue_of, members), "")

    def _place(self, device: resource_claims.DeviceId) -> tuple[str, str]:
        return device.pool, slots.gpu_of(device.device)

    def ours(self, claim: resource_claims.Claim) -> Iterator[resource_claims.Result]:
        """The devices of ours that a claim has."""
        for result in claim.allocation.results if claim.allocation else ():
            if result.device.driver == self.objects.driver:
                yield result

    @functools.cached_property
    def naming(self) -> Mapping[ids.Key, tuple[pods.Pod, ...]]:
        """The pods that name each claim, in order."""
        found: dict[ids.Key, list[pods.Pod]] = {}
        for _, pod in sorted(self.objects.pods.items()):
            for key in pod.claim_keys:
                found.setdefault(key, []).append(pod)
        return {key: tuple(several) for key, several in found.items()}

    def pods_of(self, claim: resource_claims.Claim) -> tuple[pods.Pod, ...]:
        """Those that have reserved it; of a claim that nobody has reserved, those that name it."""
        reserved = {one.uid for one in claim.consumers if one.is_pod}
        named = self.naming.get(claim.key, ())
        return tuple(pod for pod in named if pod.uid in reserved) if reserved else named

    def claims_of(self, pod: pods.Pod) -> tuple[resource_claims.Claim, ...]:
        """The claims that a pod names, as far as they are there."""
        there = (self.objects.claims.get(key) for key in pod.claim_keys)
        return tuple(one for one in there if one is not None)

    @functools.cached_property
    def queues(self) -> tree.QueueTree:
        """The queues, as the controller takes them."""
        return tree.build_tree(self.objects.queues.values())

    def queue_of(self, pod: pods.Pod) -> str:
        """The queue of a pod, "" for none."""
        return "" if self.queues.is_implicit_only else self.queues.pod_queue(pod)

    def asks_ours(self, claim: resource_claims.Claim) -> bool:
        """Whether a claim has devices of ours, or asks a class that can mean some.

        One that names no driver can, and so can one that is not there.
        """
        if claim.allocation is not None:
            return any(True for _ in self.ours(claim))
        ways = (way for ask in claim.spec.requests for way in ask.alternatives_or_self)
        return any(way.device_class not in self._foreign for way in ways)

    @functools.cached_property
    def _foreign(self) -> frozenset[str]:
        """Classes that cannot mean devices of ours, by the text of their selectors."""
        return frozenset(
            one.name
            for one in self.objects.classes.values()
            if one.selectors and not any(self.objects.driver in text for text in one.selectors)
        )


def _age(one: Taken) -> tuple[str, ids.Key, str]:
    stamped = one.claim.allocation.stamped if one.claim.allocation else ""
    return stamped, one.claim.key, one.result.share_id

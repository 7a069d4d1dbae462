"""Read model of a cluster, with cached lookups. Pure.

A `ClusterModel` never changes. A successor takes over what did not change: of a thousand nodes only
those with other slice objects are parsed anew.
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

    `shapes` are the shapes of nodes that can be requested; None if there are none, as far as known.
    `plan` is the backfill plan; None without one, or if the reader is not the controller.
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
    shapes: shape_status.ShapeStatus | None = None
    plan: backfill_plan.BackfillPlan | None = None


@dataclass(frozen=True, slots=True)
class TakenDevice:
    """A result of a claim's allocation that is a device of ours."""

    claim: resource_claims.Claim
    result: resource_claims.Result


@dataclass(frozen=True, slots=True)
class ReservedDevice:
    """A device, or a share of one, that a Reservation keeps."""

    reservation: reservations.Reservation
    held: reservations.HeldDevice


class ClusterModel:
    """Lookups are computed on first use. Any thread may read it."""

    def __init__(self, objects: Objects, previous: "ClusterModel | None" = None) -> None:
        self.objects = objects
        self._cache: dict[Hashable, Any] = {}
        self._previous_pools = previous.pools if previous is not None else {}

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, computed on first use."""
        if key not in self._cache:
            self._cache[key] = make()
        value: T = self._cache[key]
        return value

    @functools.cached_property
    def pools(self) -> Mapping[ids.NodeName, slots.PublishedPool]:
        """Our pools by node, sorted by name."""
        managed = (
            pool for pool in self.objects.slices.values() if pool.driver == self.objects.driver
        )
        laid = taint_rules.apply_rules(managed, self.objects.rules.values())
        pools_by_node: dict[ids.NodeName, slots.PublishedPool] = {}
        for pool in dra_pools.group_pools(laid):
            node = pool.slices[0].node
            if node is not None:
                previous = self._previous_pools.get(node)
                pools_by_node[node] = (
                    previous
                    if previous and previous.is_parsed_from(pool)
                    else slots.PublishedPool(pool)
                )
        return dict(sorted(pools_by_node.items()))

    @functools.cached_property
    def taken_devices(self) -> Mapping[tuple[str, str], tuple[TakenDevice, ...]]:
        """Claims' results with devices of ours, by pool and GPU, the oldest first."""
        by_gpu: dict[tuple[str, str], list[TakenDevice]] = {}
        for claim in self.objects.claims.values():
            for result in self.own_results(claim):
                by_gpu.setdefault(self._gpu_key(result.device), []).append(
                    TakenDevice(claim, result)
                )
        return {key: tuple(sorted(several, key=_age)) for key, several in by_gpu.items()}

    @functools.cached_property
    def reserved_devices(self) -> Mapping[tuple[str, str], tuple[ReservedDevice, ...]]:
        """Devices of Reservations, by pool and GPU."""
        by_gpu: dict[tuple[str, str], list[ReservedDevice]] = {}
        for reservation in self.objects.reservations.values():
            for held in reservation.held if reservation.phase == "Held" else ():
                by_gpu.setdefault(self._gpu_key(held.device), []).append(
                    ReservedDevice(reservation, held)
                )
        return {key: tuple(several) for key, several in by_gpu.items()}

    @functools.cached_property
    def planned(self) -> Mapping[tuple[str, str], tuple[reservations.HeldDevice, ...]]:
        """Devices that backfill reserves, by pool and GPU."""
        plan = self.objects.plan
        by_gpu: dict[tuple[str, str], list[reservations.HeldDevice]] = {}
        for held in plan.devices if plan is not None else ():
            by_gpu.setdefault(self._gpu_key(held.device), []).append(held)
        return {key: tuple(several) for key, several in by_gpu.items()}

    @functools.cached_property
    def planned_queue(self) -> str:
        """The queue of the pod or gang that backfill keeps devices for; "" for none."""
        plan = self.objects.plan
        if plan is None:
            return ""
        if plan.kind == "pod":
            pod = self.objects.pods.get(plan.key)
            return self.pod_queue(pod) if pod is not None else ""
        namespace, _, gang = plan.key.partition("/")
        members = (
            pod
            for _, pod in sorted(self.objects.pods.items())
            if (pod.namespace, pod.gang) == (namespace, gang)
        )
        return next(map(self.pod_queue, members), "")

    def _gpu_key(self, device: resource_claims.DeviceId) -> tuple[str, str]:
        return device.pool, slots.gpu_name(device.device)

    @functools.cached_property
    def managed_drivers(self) -> tuple[str, ...]:
        """Other drivers whose devices the controller allocates, by its rules; sorted."""
        rules = (rule for rule in self.objects.rules.values() if rule.is_allocator_rule)
        return tuple(sorted({rule.driver for rule in rules if rule.driver is not None}))

    def own_results(self, claim: resource_claims.Claim) -> Iterator[resource_claims.Result]:
        """Yield a claim's devices of our driver."""
        for result in claim.allocation.results if claim.allocation else ():
            if result.device.driver == self.objects.driver:
                yield result

    @functools.cached_property
    def pods_by_claim(self) -> Mapping[ids.Key, tuple[pods.Pod, ...]]:
        """Pods that name each claim, in order."""
        by_claim: dict[ids.Key, list[pods.Pod]] = {}
        for _, pod in sorted(self.objects.pods.items()):
            for key in pod.claim_keys:
                by_claim.setdefault(key, []).append(pod)
        return {key: tuple(several) for key, several in by_claim.items()}

    def claim_users(self, claim: resource_claims.Claim) -> tuple[pods.Pod, ...]:
        """Return the pods that have reserved a claim; without any, the pods that name it."""
        reserved = {consumer.uid for consumer in claim.consumers if consumer.is_pod}
        named = self.pods_by_claim.get(claim.key, ())
        return tuple(pod for pod in named if pod.uid in reserved) if reserved else named

    def pod_claims(self, pod: pods.Pod) -> tuple[resource_claims.Claim, ...]:
        """Return the existing claims that a pod names."""
        pod_claims = (self.objects.claims.get(key) for key in pod.claim_keys)
        return tuple(claim for claim in pod_claims if claim is not None)

    @functools.cached_property
    def queues(self) -> tree.QueueTree:
        """The queue tree, as the controller builds it."""
        return tree.build_tree(self.objects.queues.values())

    def pod_queue(self, pod: pods.Pod) -> str:
        """Return the queue of a pod, "" for none."""
        return "" if self.queues.is_implicit_only else self.queues.pod_queue(pod)

    def requests_managed(self, claim: resource_claims.Claim) -> bool:
        """Return whether a claim has devices of the controller, or requests a class of such.

        Those are devices of ours and of managed drivers. A class without driver can select some,
        and so can a missing one.
        """
        if claim.allocation is not None:
            drivers = {result.device.driver for result in claim.allocation.results}
            return not drivers.isdisjoint({self.objects.driver, *self.managed_drivers})
        subrequests = (
            subrequest
            for request in claim.spec.requests
            for subrequest in request.alternatives_or_self
        )
        return any(
            subrequest.device_class not in self._foreign_classes for subrequest in subrequests
        )

    @functools.cached_property
    def _foreign_classes(self) -> frozenset[str]:
        """Classes that cannot select devices of the controller, by the text of their selectors."""
        drivers = (self.objects.driver, *self.managed_drivers)
        return frozenset(
            device_class.name
            for device_class in self.objects.classes.values()
            if device_class.selectors
            and not any(driver in text for text in device_class.selectors for driver in drivers)
        )


def _age(taken: TakenDevice) -> tuple[str, ids.Key, str]:
    stamped = taken.claim.allocation.stamped if taken.claim.allocation else ""
    return stamped, taken.claim.key, taken.result.share_id

"""Read model of a cluster, with cached lookups. Pure.

A `ClusterModel` never changes. A successor takes over what did not change: of a thousand nodes only
those with other slice objects are parsed anew.
"""

import functools
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from driver import ids
from driver.resources import queues, reservations
from driver.resources.core import nodes, pods
from driver.resources.dra import claims as resource_claims
from driver.resources.dra import device_classes, slices, taint_rules
from driver.resources.dra import pools as dra_pools
from driver.scheduling.allocator.capacity import vocabulary
from driver.scheduling.lifecycle import backfill_plan
from driver.scheduling.provisioning import shape_status
from driver.scheduling.queues import tree
from driver.scheduling.reports.documents import slots
from driver.scheduling.snapshot import allocation_hold

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
    """A result of a claim's allocation that is a device of a GPU."""

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
        """Pools of GPUs by node, sorted by name: ours, and those of managed drivers."""
        drivers = self._gpu_drivers
        managed = (pool for pool in self.objects.slices.values() if pool.driver in drivers)
        sources_by_node: dict[ids.NodeName, list[dra_pools.Pool]] = {}
        for pool in sorted(dra_pools.group_pools(managed), key=self._pool_order):
            node = pool.slices[0].node
            if node is not None:
                sources_by_node.setdefault(node, []).append(pool)
        rules = tuple(self.objects.rules.values())
        pools_by_node: dict[ids.NodeName, slots.PublishedPool] = {}
        for node, sources in sorted(sources_by_node.items()):
            previous = self._previous_pools.get(node)
            pools_by_node[node] = (
                previous
                if previous and previous.is_parsed_from(sources, rules)
                else slots.PublishedPool(sources, rules)
            )
        return pools_by_node

    def _pool_order(self, pool: dra_pools.Pool) -> tuple[bool, str, str]:
        return pool.driver != self.objects.driver, pool.driver, pool.name

    @functools.cached_property
    def _gpu_drivers(self) -> frozenset[str]:
        """Our driver, and managed ones whose GPUs have a vocabulary."""
        described = filter(vocabulary.is_described, self.managed_drivers)
        return frozenset({self.objects.driver, *described})

    @functools.cached_property
    def taken_devices(self) -> Mapping[tuple[str, str], tuple[TakenDevice, ...]]:
        """Claims' results with devices of GPUs, by node and GPU, the oldest first."""
        by_gpu: dict[tuple[str, str], list[TakenDevice]] = {}
        for claim in self.objects.claims.values():
            for result in claim.allocation.results if claim.allocation else ():
                key = self.gpu_key(result.device)
                if key is not None:
                    by_gpu.setdefault(key, []).append(TakenDevice(claim, result))
        return {key: tuple(sorted(several, key=_age)) for key, several in by_gpu.items()}

    @functools.cached_property
    def reserved_devices(self) -> Mapping[tuple[str, str], tuple[ReservedDevice, ...]]:
        """Devices of Reservations, by node and GPU."""
        by_gpu: dict[tuple[str, str], list[ReservedDevice]] = {}
        for reservation in self.objects.reservations.values():
            for held in reservation.held if reservation.phase == "Held" else ():
                key = self.gpu_key(held.device)
                if key is not None:
                    by_gpu.setdefault(key, []).append(ReservedDevice(reservation, held))
        return {key: tuple(several) for key, several in by_gpu.items()}

    @functools.cached_property
    def planned(self) -> Mapping[tuple[str, str], tuple[reservations.HeldDevice, ...]]:
        """Devices that backfill reserves, by node and GPU."""
        plan = self.objects.plan
        by_gpu: dict[tuple[str, str], list[reservations.HeldDevice]] = {}
        for held in plan.devices if plan is not None else ():
            key = self.gpu_key(held.device)
            if key is not None:
                by_gpu.setdefault(key, []).append(held)
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

    def gpu_key(self, device: resource_claims.DeviceId) -> tuple[str, str] | None:
        """Return node and GPU of a device; None if it is no part of a GPU that is published."""
        if device.driver == self.objects.driver:
            return device.pool, slots.gpu_name(device.device)
        node = self._nodes_by_pool.get((device.driver, device.pool))
        gpu = self.pools[node].managed_devices.get(device) if node is not None else None
        return None if node is None or gpu is None else (str(node), gpu)

    @functools.cached_property
    def _nodes_by_pool(self) -> Mapping[tuple[str, str], ids.NodeName]:
        """Nodes by driver and pool."""
        return {
            (source.driver, source.name): node
            for node, pool in self.pools.items()
            for source in pool.sources
        }

    @functools.cached_property
    def managed_drivers(self) -> tuple[str, ...]:
        """Other drivers whose devices the controller allocates, by its rules; sorted."""
        return tuple(sorted(taint_rules.managed_drivers(self.objects.rules.values())))

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
        named = self.pods_by_claim.get(claim.key, ())
        if not allocation_hold.is_reserved(claim):
            return named
        return tuple(pod for pod in named if allocation_hold.is_reserved_by(claim, pod))

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

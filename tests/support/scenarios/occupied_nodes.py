"""Clusters with pods on them, for tests of what would have to go."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from driver import ids, names
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes, slices
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import cost as explain_cost
from driver.scheduling.explain import defrag, holders, step_budget, victim_search
from driver.scheduling.snapshot import cluster_state
from hack.chart import helm
from tests.support import snapshots
from tests.support.builders import objects

ENOUGH = 1_000_000
CLASSES = [
    *(device_classes.parse(entry) for entry in helm.usual("DeviceClass")),
    objects.device_class(snapshots.ANY, "true"),
]


@dataclass
class Crowd:
    """Objects as they are, a view of them, and how they are found."""

    known: dict[ids.Key, pods.Pod] = field(default_factory=dict)
    held: dict[ids.Key, claims.Claim] = field(default_factory=dict)
    view: cluster_state.ClusterState = field(
        default_factory=lambda: cluster_state.ClusterState(names.DRIVER)
    )

    def __post_init__(self) -> None:
        for device_class in CLASSES:
            self.view.set_device_class(device_class.name, device_class)

    def node(self, name: str, *published: objects.Raw, **allocatable: str) -> None:
        """A node and what it publishes: 8 CPUs, 32Gi."""
        raw = objects.a_node(name)
        raw["status"]["allocatable"] |= allocatable
        node = nodes.parse(raw)
        self.view.set_node(node.name, node)
        for item in map(slices.parse, published):
            self.view.set_slice(item.name, item)

    def run(self, name: str, node: str, *devices: str | objects.Raw, **spec: Any) -> pods.Pod:
        """A pod with a claim that holds devices of a node; without any, it has none."""
        called = [f"{name}-gpu"] if devices else []
        entries = [{"name": "gpu", "resourceClaimName": name} for name in called]
        pod = self.put(objects.pod(name, nodeName=node, resourceClaims=entries, **spec))
        for text in called:
            self.hold(text, node, *devices, by=[pod])
        return pod

    def put(self, pod: pods.Pod) -> pods.Pod:
        """A pod is there."""
        self.known[pod.key] = pod
        self.view.set_pod(pod.key, pod)
        return pod

    def hold(
        self, name: str, node: str, *devices: str | objects.Raw, by: Iterable[pods.Pod] = ()
    ) -> claims.Claim:
        """A claim is allocated, and pods have reserved it."""
        reserved = [{"resource": "pods", "name": pod.name, "uid": pod.uid} for pod in by]
        status = objects.allocated(node, *devices, reserved=reserved)
        claim = objects.claim(name, objects.a_request(count=len(devices)), status=status)
        return self.put_claim(claim)

    def put_claim(self, claim: claims.Claim) -> claims.Claim:
        """A claim is there."""
        self.held[claim.key] = claim
        self.view.set_claim(claim.key, claim)
        return claim

    @property
    def people(self) -> holders.HolderIndex:
        return holders.HolderIndex(self.view, self.held.get, self.known.get)

    def on(self, node: str) -> dict[str, holders.DeviceHolder]:
        """The tenants of a node, by the names of their pods."""
        return {
            node_holder.pod.name: node_holder
            for node_holder in self.people.node_holders(ids.NodeName(node))
        }

    @property
    def world(self) -> defrag.DefragInput:
        return defrag.DefragInput(self.view, self.held.get, self.known.get, snapshots.DECIDING)


def asks(*requests: objects.Raw, cpu: str = "1", **spec: Any) -> allocator_types.Workload:
    """A pod that comes, with one claim."""
    claim = objects.claim("new-gpu", *requests)
    asking_cpu = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return allocator_types.Workload(
        objects.pod("new", claim.name, containers=asking_cpu, **spec), (claim,)
    )


def gpus(count: int = 1) -> allocator_types.Workload:
    """One that asks whole GPUs."""
    return asks(objects.a_request(count=count))


def search(
    crowd: Crowd,
    workload: allocator_types.Workload,
    most: int = ENOUGH,
    price: explain_cost.CostFunction | None = None,
) -> victim_search.Search:
    workload_query = step_budget.workload_query(crowd.view, workload, snapshots.DECIDING)
    assert workload_query is not None
    cost = price or explain_cost.FewestPods(crowd.view)
    return victim_search.Search(crowd.view, workload_query, cost, step_budget.StepBudget(most))


def ways(crowd: Crowd, workload: allocator_types.Workload, node: str = "node-a") -> list[list[str]]:
    """The sets of pods that would do, by name, the cheapest first."""
    device_holders = crowd.people.node_holders(ids.NodeName(node))
    looked = search(crowd, workload)
    victim_sets = victim_search.victim_sets(
        looked, crowd.view.nodes[ids.NodeName(node)], device_holders
    )
    return [[victim.pod.name for victim in freed.victims] for freed in victim_sets]


def of_sizes(sizes: Mapping[str, int]) -> Crowd:
    """Nodes with so many whole GPUs."""
    crowd = Crowd()
    for name, count in sizes.items():
        crowd.node(name, objects.a_slice(name, count))
    return crowd

"""Random small worlds that use the whole language of DRA, and histories over them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from driver import names
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import allocation_result
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import cluster_state, placed_pods, snapshot
from tests.support import snapshots
from tests.support.builders import objects

Raw = dict[str, Any]
NODES = ("node-a", "node-b")
NUMA, LINKS = f"{names.DRIVER}/numa", f"{names.DRIVER}/links"
SICK = {"key": "sick", "effect": "NoSchedule"}
SELECTORS = (
    f'device.attributes["{names.DRIVER}"].numa == 0',
    f'device.attributes["{names.DRIVER}"].type == "gpu"',
)
STAMP = "2026-11-21T09:00:00Z"


@st.composite
def values(draw: st.DrawFn) -> Raw:
    """Attributes that constraints and selectors look at; `links` may be missing."""
    result: Raw = {"numa": draw(st.integers(0, 1))}
    links = draw(st.sampled_from([None, [1], [2], [1, 2]]))
    return result if links is None else {**result, "links": links}


@st.composite
def gpus(draw: st.DrawFn, node: str) -> list[Raw]:
    """A pool of whole GPUs, some sick."""
    devices = []
    for number in range(draw(st.integers(2, 4))):
        device = objects.with_values(objects.a_device(f"gpu-{number}"), **draw(values()))
        if draw(st.integers(0, 5)) == 0:
            device["taints"] = [*device["taints"], SICK]
        devices.append(device)
    return [objects.a_slice(node, devices)]


@st.composite
def shared(draw: st.DrawFn, node: str) -> list[Raw]:
    """A pool of GPUs that several claims may have."""
    return [
        objects.a_slice(
            node,
            [
                objects.with_values(objects.a_share_device(f"ts-{number}"), **draw(values()))
                for number in range(draw(st.integers(1, 2)))
            ],
        )
    ]


@st.composite
def cut(draw: st.DrawFn, node: str) -> list[Raw]:
    """A pool of GPUs, whole and in parts, over counters."""
    sets, devices = {}, []
    for number in range(draw(st.integers(1, 2))):
        name, look = f"gpu-{number}", draw(values())
        sets[name] = {"slots": "4"}
        sizes = draw(st.lists(st.sampled_from(["1", "2", "4"]), min_size=1, max_size=3))
        for index, size in enumerate(sizes):
            part = objects.drawing(f"{name}-{index}", name, slots=size)
            if draw(st.integers(0, 3)) == 0:
                part = {**part, **objects.a_share_device(part["name"])}
            devices.append(objects.with_values(part, **look))
    return objects.counting(sets, devices, node)


@st.composite
def slices_of(draw: st.DrawFn, node: str) -> list[Raw]:
    """Return what a node publishes."""
    return draw(st.one_of(gpus(node), shared(node), cut(node)))


@st.composite
def fabrics(draw: st.DrawFn) -> list[Raw]:
    """A pool that every node reaches, or none."""
    if draw(st.integers(0, 3)):
        return []
    far = [
        objects.with_values(objects.a_device(f"far-{index}"), **draw(values()))
        for index in range(2)
    ]
    return [objects.a_far_slice(far)]


@st.composite
def bodies(draw: st.DrawFn) -> Raw:
    """Return what a request, or an alternative, asks."""
    body: Raw = {
        "deviceClassName": snapshots.ANY,
        "count": draw(st.sampled_from([1, 1, 1, 1, 2, 3])),
    }
    kind = draw(st.integers(0, 9))
    if kind == 0:
        body = {"deviceClassName": snapshots.ANY, "allocationMode": "All"}
    elif kind == 1:
        body["adminAccess"] = True
    elif kind == 2:
        body["tolerations"] = [{"key": "sick", "operator": "Exists"}]
    elif kind in {3, 4}:
        body["capacity"] = {"requests": {"memory": draw(st.sampled_from(["20Gi", "50Gi"]))}}
    if draw(st.integers(0, 4)) == 0:
        body["selectors"] = [{"cel": {"expression": draw(st.sampled_from(SELECTORS))}}]
    return body


@st.composite
def requests(draw: st.DrawFn, name: str) -> Raw:
    """A request, at times with alternatives."""
    if draw(st.integers(0, 4)):
        return {"name": name, "exactly": draw(bodies())}
    return objects.first_available(name, *({"name": f"s{n}", **draw(bodies())} for n in range(2)))


@st.composite
def a_claim(draw: st.DrawFn, name: str) -> Raw:
    """A claim of one to three requests."""
    draws = [draw(requests(f"r{number}")) for number in range(draw(st.integers(1, 3)))]
    rules = [objects.matching(NUMA), objects.differing(NUMA), objects.matching(LINKS)]
    rules += [objects.differing(LINKS), objects.matching(NUMA, "r0")]
    chosen = draw(st.lists(st.sampled_from(rules), max_size=1 if draw(st.booleans()) else 2))
    return objects.a_claim(name, *draws, constraints=chosen)


@st.composite
def workloads(draw: st.DrawFn, number: int = 0) -> allocator_types.Workload:
    """A pod with one or two open claims."""
    parsed = [
        claims.parse(draw(a_claim(f"claim-{number}-{index}")))
        for index in range(draw(st.integers(1, 2)))
    ]
    asking = [{"name": "c", "resources": {"requests": {"cpu": draw(st.sampled_from(["1", "3"]))}}}]
    pod = objects.pod(f"pod-{number}", *(parsed.name for parsed in parsed), containers=asking)
    return allocator_types.Workload(pod, tuple(parsed))


@st.composite
def published(draw: st.DrawFn) -> list[Raw]:
    """The slices of a cluster."""
    results = [entry for node in NODES for entry in draw(slices_of(node))]
    return [*results, *draw(fabrics())]


@dataclass(frozen=True, slots=True)
class Written:
    """A pod with its allocated claims, as the caches hold them after a decision."""

    pod: pods.Pod
    claims: tuple[claims.Claim, ...]
    flight: snapshot.InFlight


def written(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    placement: allocator_types.Placement,
) -> Written:
    """Return what a decision makes of the claims."""
    allocations = allocation_result.build_allocations(view, workload, placement, STAMP)
    reserved = {"resource": "pods", "name": workload.pod.name, "uid": workload.pod.uid}
    results = []
    for open_claim in workload.open_claims:
        status = {
            "allocation": claims.render_allocation(allocations[open_claim.key]),
            "reservedFor": [reserved],
        }
        results.append(claims.parse(objects.a_claim(open_claim.name, status=status)))
    return Written(
        workload.pod, tuple(results), snapshot.InFlight(workload.pod, placement.node, allocations)
    )


def put(view: cluster_state.ClusterState, item: Written) -> None:
    """The pod and its claims are seen."""
    view.set_pod(item.pod.key, item.pod)
    for claim in item.claims:
        view.set_claim(claim.key, claim)


def take_away(view: cluster_state.ClusterState, item: Written) -> None:
    """The pod and its claims are gone."""
    view.set_pod(item.pod.key, None)
    for claim in item.claims:
        view.set_claim(claim.key, None)


def fresh(results: Sequence[Raw], writtens: Sequence[Written] = ()) -> cluster_state.ClusterState:
    """The picture of these objects, made at once."""
    state = snapshots.view(*results, more_nodes=[objects.node(name) for name in NODES])
    for item in writtens:
        put(state, item)
    return state


def shown(view: snapshot.Snapshot) -> object:
    """All that a picture says, but for marks and identities."""
    pools = {
        key: (pool.slices, dict(pool.counters), dict(view.remaining_counters(pool)))
        for key, pool in sorted(view.pools.items())
    }
    shares = {
        name: [
            (reachable_pool.pool.name, reachable_pool.slices, reachable_pool.problem)
            for reachable_pool in view.reachable_pools(name)
        ]
        for name in sorted(view.nodes)
    }
    holders = {
        device: [
            (holder.claim, holder.result, holder.allocation) for holder in view.holders(device)
        ]
        for pool in view.pools.values()
        for slice_ in pool.slices
        for device in (
            claims.DeviceId(pool.driver, pool.name, each.name) for each in slice_.devices
        )
    }
    rest = dict(view.nodes), dict(view.classes), dict(view.usage)
    return pools, shares, holders, rest, stored(view), placed(view)


def stored(view: snapshot.Snapshot) -> object:
    """Return what is known of volumes."""
    held = view.storage
    return (
        dict(held.claims),
        dict(held.persistent_volumes),
        dict(held.storage_classes),
        dict(held.csi_nodes),
    )


def placed(view: snapshot.Snapshot) -> object:
    """The kinds of pods with their nodes, those nominated, and who mounts which claim."""
    people = view.population
    nominated = {name: [*people.nominated_pods(name)] for name in view.nodes}
    users = {key: people.volume_claim_users(key) for key in view.storage.claims}
    counts = counted(people.kind_counts()), counted(people.anti_affinity_kinds())
    return counts, nominated, users, dict(people.namespaces)


def counted(members: Iterable[placed_pods.KindCounts]) -> dict[str, int]:
    """Pods by kind and node; a layer may tell of one kind several times."""
    total: Counter[str] = Counter()
    for kind, on in members:
        labels = sorted(kind.labels.items())
        for name, number in on.items():
            total[repr((kind.namespace, labels, kind.deleting, kind.affinity, name))] += number
    return {key: number for key, number in total.items() if number}

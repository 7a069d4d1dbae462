"""ClusterView: an immutable picture of what matters for placing pods. Pure.

Built from the caches and the decisions in flight; deciding reads nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver import ids, names
from driver.controller import counting
from driver.resources import (
    claims,
    classes,
    nodes,
    pods,
    selectors,
    slices,
    taint_rules,
    volumes,
)


@dataclass(frozen=True, slots=True)
class Pool:
    """The newest generation of a pool. `problem` says why its devices must not be used."""

    driver: str
    name: str
    slices: tuple[slices.Slice, ...]
    problem: str = ""

    def reaches(self, node: nodes.Node) -> bool:
        """Whether any device of the pool can be used on the node."""
        return any(reaches(one, node) for one in self.slices)


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What the pods of a node take, those on their way to it included."""

    requests: Mapping[str, int] = field(default_factory=dict)
    ports: frozenset[pods.HostPort] = frozenset()
    count: int = 0


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One consistent picture.

    `taken` maps each device in use to the claim that holds it; `drained` are devices whose counters
    are used up by others (KEP-4815). `volumes` maps a bound
    PersistentVolumeClaim to the nodes that reach its volume.
    """

    driver: str
    nodes: Mapping[ids.NodeName, nodes.Node]
    pools: tuple[Pool, ...]
    classes: Mapping[str, classes.DeviceClass]
    taken: Mapping[claims.DeviceId, ids.Key]
    use: Mapping[ids.NodeName, NodeUse]
    drained: frozenset[claims.DeviceId] = frozenset()
    volumes: Mapping[ids.Key, selectors.NodeSelector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InFlight:
    """A decision that is being written: its pod, its node, and its devices by claim."""

    pod: pods.Pod
    node: ids.NodeName
    devices: Mapping[ids.Key, tuple[claims.DeviceId, ...]]


@dataclass(frozen=True, slots=True)
class Caches:
    """What the reflectors hold."""

    nodes: Mapping[ids.Key, nodes.Node]
    slices: Mapping[ids.Key, slices.Slice]
    classes: Mapping[ids.Key, classes.DeviceClass]
    claims: Mapping[ids.Key, claims.Claim]
    pods: Mapping[ids.Key, pods.Pod]
    bound_volumes: Mapping[ids.Key, volumes.BoundClaim] = field(default_factory=dict)
    rules: Mapping[ids.Key, taint_rules.TaintRule] = field(default_factory=dict)
    persistent_volumes: Mapping[ids.Key, volumes.Volume] = field(default_factory=dict)


def build(driver: str, caches: Caches, in_flight: Iterable[InFlight] = ()) -> ClusterView:
    """The picture of the caches with the decisions in flight laid over them."""
    flying = tuple(in_flight)
    taken = dict(_taken(caches.claims.values()))
    for decision in flying:
        for key, devices in decision.devices.items():
            taken.update(dict.fromkeys(devices, key))
    pools = gather(taint_rules.applied(caches.slices.values(), caches.rules.values()))
    return ClusterView(
        driver=driver,
        nodes={node.name: node for node in caches.nodes.values()},
        pools=pools,
        classes={one.name: one for one in caches.classes.values()},
        taken=taken,
        drained=frozenset(
            device for pool in pools for device in counting.drained(pool.slices, taken)
        ),
        use=_use(_placed(caches, flying)),
        volumes=dict(_volume_nodes(caches)),
    )


def gather(found: Iterable[slices.Slice]) -> tuple[Pool, ...]:
    """Pools by driver and name, slices by name: the order in which devices are preferred."""
    grouped: dict[tuple[str, str], list[slices.Slice]] = {}
    for one in found:
        grouped.setdefault((one.driver, one.pool), []).append(one)
    return tuple(
        _pool(driver, name, members) for (driver, name), members in sorted(grouped.items())
    )


def _pool(driver: str, name: str, members: list[slices.Slice]) -> Pool:
    newest = max(one.generation for one in members)
    current = sorted((one for one in members if one.generation == newest), key=lambda s: s.name)
    wanted = current[0].slice_count
    problem = ""
    if len(current) != wanted:
        problem = f"pool {name} shows {len(current)} of {wanted} slices"
    seen = [device.name for one in current for device in one.devices]
    if len(set(seen)) != len(seen):
        problem = f"pool {name} names a device twice"
    return Pool(driver, name, tuple(current), problem)


def reaches(one: slices.Slice, node: nodes.Node) -> bool:
    """Whether the devices of a slice can be used on a node."""
    if one.node is not None:
        return one.node == node.name
    if one.selector is not None:
        return one.selector.matches(node.name, node.labels)
    return one.everywhere


def _taken(found: Iterable[claims.Claim]) -> Iterable[tuple[claims.DeviceId, ids.Key]]:
    for claim in found:
        for result in claim.allocation.results if claim.allocation else ():
            if not result.admin_access:
                yield result.device, claim.key


def _volume_nodes(caches: Caches) -> Iterable[tuple[ids.Key, selectors.NodeSelector]]:
    for key, bound in caches.bound_volumes.items():
        volume = caches.persistent_volumes.get(ids.Key(bound.volume))
        if volume is not None and volume.selector is not None:
            yield key, volume.selector


def all_ours(view: ClusterView, found: Iterable[claims.DeviceId]) -> bool:
    """Whether each of these devices is still the controller's to give (D2)."""
    ours = {
        claims.DeviceId(pool.driver, pool.name, device.name)
        for pool in view.pools
        for one in pool.slices
        for device in one.devices
        if device.tainted_for("controller")
        and not any(taint.key == names.HANDOVER_TAINT for taint in device.taints)
    }
    return ours.issuperset(found)


def pinned_node(claim: claims.Claim) -> ids.NodeName | None:
    """The one node an allocation is for, when it is for one."""
    selector = claim.allocation.selector if claim.allocation else None
    if selector is None or len(selector.terms) != 1:
        return None
    term = selector.terms[0]
    if term.labels or len(term.fields) != 1 or len(term.fields[0].values) != 1:
        return None
    return ids.NodeName(term.fields[0].values[0])


def claims_of(
    pod: pods.Pod, found: Mapping[ids.Key, claims.Claim]
) -> tuple[claims.Claim, ...] | None:
    """The claims of a pod; None while one of them is not there yet."""
    result = []
    for entry in pod.claims:
        if entry.claim == "":
            continue
        claim = found.get(ids.Key(f"{pod.namespace}/{entry.claim}"))
        if claim is None:
            return None
        result.append(claim)
    return tuple(result)


def _placed(
    caches: Caches, flying: tuple[InFlight, ...]
) -> Iterable[tuple[ids.NodeName, pods.Pod]]:
    """Pods with their node: bound, or unbound with an allocation that pins them."""
    on_their_way = {decision.pod.uid: decision.node for decision in flying}
    for pod in caches.pods.values():
        if pod.finished:
            continue
        node = pod.node or on_their_way.get(pod.uid) or _pinned(pod, caches.claims)
        if node is not None:
            yield node, pod


def _pinned(pod: pods.Pod, found: Mapping[ids.Key, claims.Claim]) -> ids.NodeName | None:
    for claim in claims_of(pod, found) or ():
        if any(consumer.uid == pod.uid for consumer in claim.consumers):
            return pinned_node(claim)
    return None


def _use(placed: Iterable[tuple[ids.NodeName, pods.Pod]]) -> dict[ids.NodeName, NodeUse]:
    requests: dict[ids.NodeName, dict[str, int]] = {}
    ports: dict[ids.NodeName, set[pods.HostPort]] = {}
    counts: dict[ids.NodeName, int] = {}
    for node, pod in placed:
        total = requests.setdefault(node, {})
        for name, amount in pod.requests.items():
            total[name] = total.get(name, 0) + amount
        ports.setdefault(node, set()).update(pod.host_ports)
        counts[node] = counts.get(node, 0) + 1
    return {
        node: NodeUse(total, frozenset(ports[node]), counts[node])
        for node, total in requests.items()
    }

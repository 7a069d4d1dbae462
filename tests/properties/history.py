"""Random histories of a small cluster: objects come, change and go, decisions fly and land."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from driver import ids, names
from driver.resources.core import namespaces, node_selectors, pods, volumes
from driver.resources.dra import claims, slices, taint_rules
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support import snapshots
from tests.support.builders import objects
from tests.support.scenarios import affinity

NODES = (objects.node("node-a"), objects.node("node-b"))
DEVICES = ("gpu-0", "gpu-1", "ts-0")
KINDS = ("node", "slice", "class", "rule", "claim", "pod", "bound", "volume", "namespace")
_SETTERS = {"class": "device_class", "rule": "taint_rule", "bound": "volume_claim"}
"""What `ClusterState.set_*` calls a kind, where it is not the kind's own name."""


@dataclass(frozen=True, slots=True)
class Put:
    """An object came or changed; None: it is gone."""

    kind: str
    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class Flight:
    """A decision is being written, or its writing ends, where it is."""

    decision: snapshot.InFlight


Event = Put | Flight


@dataclass(slots=True)
class World:
    """Objects, and a cluster state that was told of every change."""

    view: cluster_state.ClusterState = field(
        default_factory=lambda: cluster_state.ClusterState(names.DRIVER)
    )
    there: dict[str, dict[Any, Any]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    flying: dict[ids.PodUid, snapshot.InFlight] = field(default_factory=dict)

    def tell(self, event: Event) -> None:
        if isinstance(event, Put):
            self._put(event)
        else:
            self._fly(event.decision)

    def _put(self, put: Put) -> None:
        if put.value is None:
            self.there[put.kind].pop(put.key, None)
        else:
            self.there[put.kind][put.key] = put.value
        setter = f"set_{_SETTERS.get(put.kind, put.kind)}"
        getattr(self.view, setter)(put.key, put.value)

    def _fly(self, decision: snapshot.InFlight) -> None:
        """One decision a pod, and a claim, at a time; a second one lands the first."""
        for other in [*self.flying.values()]:
            if (
                other.pod.uid == decision.pod.uid
                or other.allocations.keys() & decision.allocations.keys()
            ):
                del self.flying[other.pod.uid]
                self.view.end_write(other)
                return
        self.flying[decision.pod.uid] = decision
        self.view.begin_write(decision)

    def fresh(self) -> snapshot.Snapshot:
        """The picture of what there is, made at once."""
        present = self.there
        return cluster_state.build(
            names.DRIVER,
            cluster_state.CachedObjects(
                nodes=present["node"],
                slices=present["slice"],
                classes=present["class"],
                claims=present["claim"],
                pods=present["pod"],
                volume_claims=present["bound"],
                rules=present["rule"],
                persistent_volumes=present["volume"],
                namespace_objects=present["namespace"],
            ),
            self.flying.values(),
        )


def beginning() -> World:
    """Two nodes with two GPUs and a shared one each."""
    world = World()
    for node in NODES:
        world.tell(Put("node", node.name, node))
        item = a_slice(node.name, 1, DEVICES, 1)
        world.tell(Put("slice", item.name, item))
    for device_class in (objects.device_class(), objects.device_class(snapshots.ANY, "true")):
        world.tell(Put("class", device_class.name, device_class))
    return world


def a_slice(node: str, generation: int, devices: tuple[str, ...], count: int) -> slices.Slice:
    document = {
        "gpu-0": objects.a_device,
        "gpu-1": objects.a_device,
        "ts-0": objects.a_share_device,
    }
    raw = objects.a_slice(
        node,
        [document[device](device) for device in devices],
        generation=generation,
        resourceSliceCount=count,
    )
    return slices.parse(raw)


def a_far_slice(node: str) -> slices.Slice:
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}
    return slices.parse(objects.a_far_slice(1, nodeSelector=terms))


def a_pod(name: str, node: str | None, claim: str, look: str = "") -> pods.Pod:
    raw = objects.a_pod(name, claim, **({"nodeName": node} if node else {}))
    if look:
        raw["metadata"]["labels"] = {"app": look}
        raw["spec"]["affinity"] = affinity.apart(affinity.term("web"))
        mounted = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
        raw["spec"]["volumes"] = [mounted]
        raw["status"]["nominatedNodeName"] = "node-a"
    return pods.parse(raw)


def a_namespace(team: str) -> namespaces.Namespace:
    return namespaces.Namespace("default", {"team": team})


def a_claim(name: str, node: str, devices: tuple[str, ...], pod: str) -> claims.Claim:
    reserved = [{"resource": "pods", "name": pod, "uid": objects.uid_of(pod)}]
    number = int(objects.uid_of(name)[:8], 16)
    taken = [
        objects.a_share(device, number, memory="20Gi") if device == "ts-0" else device
        for device in devices
    ]
    return objects.claim(name, status=objects.allocated(node, *taken, reserved=reserved))


def a_rule(
    name: str, driver: str | None, pool: str | None, device: str | None
) -> taint_rules.TaintRule:
    taint = slices.Taint("sick", "", "NoSchedule")
    return taint_rules.TaintRule(name, taint, True, driver, pool, device)  # noqa: FBT003


def a_volume(node: str) -> volumes.Volume:
    return volumes.Volume(node_selectors.single_node_selector(ids.NodeName(node)))


node_names = st.sampled_from(["node-a", "node-b"])
pod_names = st.sampled_from(["p", "q"])
claim_names = st.sampled_from(["one", "two"])
few_devices = st.lists(st.sampled_from(DEVICES), unique=True, max_size=3).map(tuple)
made_claims = st.builds(a_claim, claim_names, node_names, few_devices, pod_names)


def named(kind: str, search_strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Put]:
    """An object that carries its own name comes, or one of that name goes."""

    def put(item: Any, *, gone: bool) -> Put:
        key = item.key if kind in {"claim", "pod"} else item.name
        return Put(kind, key, None if gone else item)

    return st.builds(put, search_strategy, gone=st.sampled_from([False, False, True]))


_slices = st.one_of(
    st.builds(a_slice, node_names, st.integers(1, 2), few_devices, st.integers(1, 2)),
    st.builds(a_far_slice, node_names),
)
_looks = st.sampled_from(["", "web", "db"])
_pods = st.builds(a_pod, pod_names, st.one_of(st.none(), node_names), claim_names, _looks)
_spaces = st.builds(a_namespace, st.sampled_from(["x", "y"]))
_nodes = st.sampled_from([*NODES, objects.node("node-a", unschedulable=True)])
_classes = st.sampled_from([objects.device_class(), objects.device_class(snapshots.ANY, "true")])
_rules = st.builds(
    a_rule,
    st.sampled_from(["r1", "r2"]),
    st.sampled_from([None, names.DRIVER]),
    st.sampled_from([None, "node-a", "node-b"]),
    st.sampled_from([None, *DEVICES]),
)
_bound = st.sampled_from([volumes.VolumeClaim("disk"), None])


@st.composite
def flights(draw: st.DrawFn) -> Flight:
    claim = draw(made_claims)
    assert claim.allocation is not None
    pod = a_pod(draw(pod_names), None, claim.name)
    allocations = {claim.key: claim.allocation}
    return Flight(snapshot.InFlight(pod, ids.NodeName(draw(node_names)), allocations))


events: st.SearchStrategy[Event] = st.one_of(
    named("node", _nodes),
    named("slice", _slices),
    named("class", _classes),
    named("rule", _rules),
    named("claim", made_claims),
    named("claim", made_claims),
    named("pod", _pods),
    named("pod", _pods),
    named("namespace", _spaces),
    st.builds(Put, st.just("bound"), st.just("default/data"), _bound),
    st.builds(
        Put,
        st.just("volume"),
        st.just("disk"),
        st.one_of(st.none(), st.builds(a_volume, node_names)),
    ),
    flights(),
)

"""What a cluster is, as it is kept on disk and handed around. Pure: values only."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

import pydantic

CORE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
NODE_CORE = ("containerd", "kubelet")
NODE_DRIVER = ("gpu", "mps", "plugin")


class Allocator(StrEnum):
    """Who allocates a node's devices (the plugin's flag of the same name)."""

    CONTROLLER = "controller"
    SCHEDULER = "scheduler"


class Driver(StrEnum):
    """How the driver runs: as processes of the machine, as pods by its chart, or not at all."""

    PROCESSES = "processes"
    PODS = "pods"
    NONE = "none"


class Phase(StrEnum):
    """How far a cluster came."""

    STARTING = "starting"
    UP = "up"


class NodeState(pydantic.BaseModel, frozen=True, extra="forbid"):
    """One node. `index` (from 0) decides its addresses; `taints` are `key=value:Effect`.

    `plugin_flags` are more of the kubelet plugin's own: `--share-domain=cluster`.
    """

    name: str
    index: int
    machine: str
    allocator: Allocator
    labels: Mapping[str, str] = pydantic.Field(default_factory=dict)
    taints: tuple[str, ...] = ()
    plugin_flags: tuple[str, ...] = ()


class ClusterState(pydantic.BaseModel, frozen=True, extra="forbid"):
    """The whole cluster.

    `kubernetes` is its release line ("1.37"). `ports` maps a listener (`kube-apiserver`,
    `kubelet.node-0`) to its port. `sysctls` holds the machine's values from before, `absent` the
    folders that did not exist then: `down` puts both back. `feature_gates` of Kubernetes' own
    components differ from their defaults.
    """

    checkout: str
    boot: str
    phase: Phase
    kubernetes: str
    driver: Driver
    controllers: int
    nodes: tuple[NodeState, ...]
    ports: Mapping[str, int]
    sysctls: Mapping[str, str]
    absent: tuple[str, ...]
    feature_gates: Mapping[str, bool] = pydantic.Field(default_factory=dict)

    def node(self, name: str) -> NodeState | None:
        """The node of that name."""
        return next((node for node in self.nodes if node.name == name), None)

    def next_index(self) -> int:
        """The lowest index that no node has."""
        taken = {node.index for node in self.nodes}
        return next(index for index in range(len(taken) + 1) if index not in taken)

    def with_node(self, node: NodeState, ports: Mapping[str, int]) -> Self:
        """The cluster with one node more."""
        return self.model_copy(
            update={"nodes": (*self.nodes, node), "ports": {**self.ports, **ports}}
        )

    def without_node(self, name: str) -> Self:
        """The cluster with one node less."""
        ports = {key: port for key, port in self.ports.items() if not key.endswith(f".{name}")}
        nodes = tuple(node for node in self.nodes if node.name != name)
        return self.model_copy(update={"nodes": nodes, "ports": ports})

    def components(self) -> tuple[tuple[str, str | None], ...]:
        """Every component that should run, with its node."""
        per_node = (*NODE_CORE, *self.driver_components())
        count = self.controllers if self.driver is Driver.PROCESSES else 0
        return (
            *((name, None) for name in CORE),
            *((name, node.name) for node in self.nodes for name in per_node),
            *((f"controller-{number}", None) for number in range(count)),
        )

    def driver_components(self) -> tuple[str, ...]:
        """What of the driver's world runs as processes of each node; the GPUs always do."""
        match self.driver:
            case Driver.PROCESSES:
                return NODE_DRIVER
            case Driver.PODS:
                return NODE_DRIVER[:1]
            case Driver.NONE:
                return ()


class Wanted(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What a person asks `up` for; `kubernetes` is a release line that versions.toml holds."""

    kubernetes: str
    nodes: tuple[NodeState, ...]
    controllers: int
    driver: Driver
    feature_gates: Mapping[str, bool] = pydantic.Field(default_factory=dict)

    def is_met_by(self, cluster: ClusterState) -> bool:
        """Whether a running cluster is this one; nodes added to it later do not matter."""
        asked = (self.kubernetes, self.driver, self.controllers)
        same = asked == (cluster.kubernetes, cluster.driver, cluster.controllers)
        same = same and self.feature_gates == cluster.feature_gates
        return same and all(node in cluster.nodes for node in self.nodes)

"""Processes that are killed, and started again as whatever runs them would; and frozen ones."""

from tests.chaos import draw, faults, world
from tests.chaos.never import NEVER


class Deaths:
    """Deaths of our processes and of Kubernetes'."""

    def __init__(self, source: world.World) -> None:
        self._world = source
        self._cluster = source.cluster

    def acts(self) -> faults.Acts:
        """Return the acts by kind."""
        kinds = draw.Kind
        return {
            kinds.PLUGIN_KILLED: self._on_node("plugin"),
            kinds.SUPERVISOR_KILLED: self._on_node("mps"),
            kinds.KUBELET_KILLED: self._on_node("kubelet"),
            kinds.CONTAINERD_KILLED: self._on_node("containerd"),
            kinds.API_SERVER_KILLED: self._of_all("kube-apiserver"),
            kinds.ETCD_KILLED: self._of_all("etcd"),
            kinds.SCHEDULER_KILLED: self._of_all("kube-scheduler"),
            kinds.CONTROLLER_MANAGER_KILLED: self._of_all("kube-controller-manager"),
            kinds.LEADER_KILLED: lambda _: self._kill_controller(self._world.holder()),
            kinds.STANDBY_KILLED: lambda _: self._kill_controller(self._world.standby()),
            kinds.LEADER_FROZEN: lambda fault: self._freeze(fault, self._world.holder(), None),
            kinds.STANDBY_FROZEN: lambda fault: self._freeze(fault, self._world.standby(), None),
            kinds.PLUGIN_FROZEN: self._frozen_on_node("plugin"),
            kinds.SUPERVISOR_FROZEN: self._frozen_on_node("mps"),
        }

    def _on_node(self, component: str) -> faults.Act:
        def act(fault: draw.Fault) -> None:
            side = self._world.nodes[fault.node]
            if component in {"plugin", "kubelet"}:
                side.expect_registration()
            self._cluster.kill(component, side.name)
            self._cluster.start(component, side.name)

        return act

    def _of_all(self, component: str) -> faults.Act:
        def act(_: draw.Fault) -> None:
            self._cluster.kill(component)
            self._cluster.start(component)

        return act

    def _kill_controller(self, name: str) -> None:
        self._cluster.kill(name)
        self._world.died_now(name)
        self._cluster.start(name)

    def _frozen_on_node(self, component: str) -> faults.Act:
        return lambda fault: self._freeze(fault, component, self._world.nodes[fault.node].name)

    def _freeze(self, fault: draw.Fault, component: str, node: str | None) -> None:
        self._cluster.freeze(component, node)
        try:
            self._world.time.wait(NEVER, fault.seconds)
        finally:
            self._cluster.thaw(component, node)

"""Nodes that come and go while the cluster is up."""

from collections.abc import Mapping

import pydantic

from hack.cluster import driver, errors, host, layout, node, plan, state, store, toolchain


class NewNode(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A node that is asked for: see `state.NodeState`."""

    name: str
    machine: str
    allocator: state.Allocator | str
    labels: Mapping[str, str] = pydantic.Field(default_factory=dict)
    taints: tuple[str, ...] = ()
    plugin_flags: tuple[str, ...] = ()


def add(where: layout.Layout, new: NewNode) -> None:
    """Add a node and wait for it; one that could not start is removed again."""
    _check(new)
    with toolchain.lock(where.lock):
        cluster = store.running(where)
        if cluster.node(new.name) is not None:
            raise errors.ClusterError(f"node {new.name} is there already")
        entry = state.NodeState(
            name=new.name,
            index=cluster.next_index(),
            machine=new.machine,
            allocator=state.Allocator(new.allocator),
            labels=new.labels,
            taints=new.taints,
            plugin_flags=new.plugin_flags,
        )
        listeners = plan.node_listeners(new.name)
        ports = plan.choose_ports(listeners, tuple(cluster.ports.values()), host.is_free)
        grown = cluster.with_node(entry, ports)
        # Recorded before it is made, so that `down` and `remove-node` find a half-made one.
        store.write(where, grown)
        try:
            _make(where, entry, grown)
        except errors.ClusterError:
            node.remove(where, entry, cluster.absent)
            store.write(where, cluster)
            raise


def remove(where: layout.Layout, name: str) -> None:
    """Take a node away as if its machine were gone."""
    with toolchain.lock(where.lock):
        cluster = store.running(where)
        entry = cluster.node(name)
        if entry is None:
            names = ", ".join(node.name for node in cluster.nodes)
            raise errors.ClusterError(f"no node {name}; expected one of {names}")
        if len(cluster.nodes) == 1:
            raise errors.ClusterError(
                f"{name} is the last node; end the cluster: make cluster-down"
            )
        node.remove(where, entry, ())
        store.write(where, cluster.without_node(name))


def _check(new: NewNode) -> None:
    plan.check_node_name(new.name)
    for taint in new.taints:
        plan.parse_taint(taint)
    if new.allocator not in set(state.Allocator):
        raise errors.ClusterError(
            f"allocator {new.allocator!r}: expected {' or '.join(state.Allocator)}"
        )


def _make(where: layout.Layout, entry: state.NodeState, cluster: state.ClusterState) -> None:
    node.prepare(where, entry, cluster.ports)
    node.start_runtime(where, entry, cluster.driver)
    node.start_kubelet(where, entry, cluster.feature_gates)
    node.wait_ready(where, entry.name)
    if cluster.driver is state.Driver.PROCESSES:
        driver.start_node(where, entry, cluster.ports)
    if cluster.driver is not state.Driver.NONE:
        driver.wait_slices(where, entry.name, cluster.driver_components())

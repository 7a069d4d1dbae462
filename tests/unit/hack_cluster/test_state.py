from hack.cluster import state


def a_node(index: int) -> state.NodeState:
    return state.NodeState(
        name=f"node-{index}", index=index, machine="m", allocator=state.Allocator.CONTROLLER
    )


def a_cluster(
    *nodes: state.NodeState, driver: state.Driver = state.Driver.PROCESSES
) -> state.ClusterState:
    return state.ClusterState(
        checkout="/c",
        boot="b",
        phase=state.Phase.UP,
        kubernetes="1.37",
        driver=driver,
        controllers=2,
        nodes=nodes,
        ports={"etcd": 1, "kubelet.node-0": 2, "kubelet.node-1": 3},
        sysctls={},
        absent=(),
    )


def test_a_removed_node_s_index_and_ports_are_free_again() -> None:
    left = a_cluster(a_node(0), a_node(1)).without_node("node-0")
    assert left.next_index() == 0
    assert left.ports == {"etcd": 1, "kubelet.node-1": 3}


def test_a_driver_that_runs_as_pods_leaves_only_the_gpus_to_the_machine() -> None:
    components = a_cluster(a_node(0), driver=state.Driver.PODS).components()
    assert [name for name, node in components if node] == ["containerd", "kubelet", "gpu"]
    assert not [name for name, _ in components if name.startswith("controller-")]


def test_a_cluster_without_the_driver_has_no_driver_components() -> None:
    names = {name for name, _ in a_cluster(a_node(0), driver=state.Driver.NONE).components()}
    assert names == {*state.CORE, *state.NODE_CORE}


def test_every_node_and_every_controller_is_a_component() -> None:
    components = a_cluster(a_node(0), a_node(1)).components()
    assert ("plugin", "node-1") in components
    assert ("controller-1", None) in components


def test_nodes_added_later_do_not_make_it_another_cluster() -> None:
    expected = state.Wanted(
        kubernetes="1.37", nodes=(a_node(0),), controllers=2, driver=state.Driver.PROCESSES
    )
    assert expected.is_met_by(a_cluster(a_node(0), a_node(1)))
    assert not expected.is_met_by(a_cluster(a_node(1)))
    assert not expected.is_met_by(a_cluster(a_node(0), driver=state.Driver.NONE))


def test_a_cluster_of_another_kubernetes_is_another_cluster() -> None:
    expected = state.Wanted(
        kubernetes="1.36", nodes=(a_node(0),), controllers=2, driver=state.Driver.PROCESSES
    )
    assert not expected.is_met_by(a_cluster(a_node(0)))


def test_a_cluster_with_other_feature_gates_is_another_cluster() -> None:
    expected = state.Wanted(
        kubernetes="1.37",
        nodes=(a_node(0),),
        controllers=2,
        driver=state.Driver.PROCESSES,
        feature_gates={"GenericWorkload": True},
    )
    running = a_cluster(a_node(0))
    assert not expected.is_met_by(running)
    assert expected.is_met_by(
        running.model_copy(update={"feature_gates": {"GenericWorkload": True}})
    )


def test_a_state_survives_its_file() -> None:
    cluster = a_cluster(a_node(0))
    assert state.ClusterState.model_validate_json(cluster.model_dump_json()) == cluster

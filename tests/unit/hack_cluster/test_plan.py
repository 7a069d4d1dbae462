import ipaddress

import pytest

from hack.cluster import errors, plan


def test_no_two_nodes_share_an_address_or_a_pod_range() -> None:
    indexes = range(plan.MOST_NODES)
    assert len({plan.node_address(index) for index in indexes}) == plan.MOST_NODES
    assert len({plan.pod_range(index) for index in indexes}) == plan.MOST_NODES


def test_pods_services_and_machine_addresses_do_not_overlap() -> None:
    pods = ipaddress.IPv4Network(plan.POD_NETWORK)
    services = ipaddress.IPv4Network(plan.SERVICE_NETWORK)
    last = ipaddress.IPv4Network(plan.pod_range(plan.MOST_NODES - 1))
    assert last.subnet_of(pods)
    assert not pods.overlaps(services)
    for address in (plan.API_ADDRESS, plan.node_address(0)):
        assert ipaddress.IPv4Address(address) not in services
    assert ipaddress.IPv4Address(plan.API_SERVICE) == services[1]


def test_ports_skip_those_in_use_and_those_given_before() -> None:
    busy = {plan.FIRST_PORT, plan.FIRST_PORT + 2}
    chosen = plan.choose_ports(("a", "b"), (plan.FIRST_PORT + 1,), lambda port: port not in busy)
    assert chosen == {"a": plan.FIRST_PORT + 3, "b": plan.FIRST_PORT + 4}


def test_a_machine_without_a_free_port_says_for_whom_it_lacked() -> None:
    with pytest.raises(errors.ClusterError, match="no free port for etcd"):
        plan.choose_ports(("etcd",), (), lambda _port: False)


@pytest.mark.parametrize("name", ["", "Node", "-a", "a-", "a.b", "a" * 21])
def test_a_node_name_that_no_socket_path_could_carry_is_refused(name: str) -> None:
    with pytest.raises(errors.ClusterError, match="node name"):
        plan.check_node_name(name)


@pytest.mark.parametrize("count", [0, 255])
def test_an_impossible_number_of_nodes_is_refused(count: int) -> None:
    with pytest.raises(errors.ClusterError, match="1 to 254"):
        plan.node_names(count)


def test_a_taint_is_read_with_and_without_a_value() -> None:
    assert plan.parse_taint("a/b=c:NoSchedule") == {
        "key": "a/b",
        "value": "c",
        "effect": "NoSchedule",
    }
    assert plan.parse_taint("a:NoExecute") == {"key": "a", "effect": "NoExecute"}


@pytest.mark.parametrize("text", ["a=b", "a=b:Never", ":NoSchedule"])
def test_a_broken_taint_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(errors.ClusterError, match="expected key=value:NoSchedule"):
        plan.parse_taint(text)


def test_feature_gates_are_read_and_a_broken_one_is_refused() -> None:
    assert plan.parse_feature_gates("A=true,B=false") == {"A": True, "B": False}
    assert plan.parse_feature_gates("") == {}
    for text in ("A", "A=yes", "=true", "A=true,"):
        with pytest.raises(errors.ClusterError, match="expected Name=true or Name=false"):
            plan.parse_feature_gates(text)


def test_labels_are_read_and_a_broken_one_is_refused() -> None:
    assert plan.parse_labels(["a=b", "c="]) == {"a": "b", "c": ""}
    with pytest.raises(errors.ClusterError, match="expected key=value"):
        plan.parse_labels(["a"])

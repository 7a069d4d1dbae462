from pathlib import Path

import pytest

from hack.cluster import errors, layout

CHECKOUT = Path("/somewhere/checkout")
USUAL = layout.Layout(CHECKOUT, name="")
NAMED = layout.Layout(CHECKOUT, name="tests")


def test_a_cluster_without_a_name_lies_where_it_always_did() -> None:
    assert USUAL.dot == CHECKOUT / ".cluster"
    assert USUAL.marker == Path("/var/lib/ration-lab/owner.json")
    assert USUAL.tag == "f182fa"


@pytest.mark.parametrize(
    "owner",
    ["tag", "home", "marker", "state", "etcd", "shims", "network", "kubeconfig", "logs", "records"],
)
def test_two_clusters_of_a_checkout_share_no_folder(owner: str) -> None:
    assert getattr(NAMED, owner) != getattr(USUAL, owner)


def test_all_clusters_of_a_machine_share_the_lock() -> None:
    assert NAMED.lock == USUAL.lock


def test_the_network_outlives_the_home() -> None:
    assert not NAMED.network.is_relative_to(NAMED.home)


def test_a_named_cluster_of_another_checkout_is_another() -> None:
    other = layout.Layout(Path("/elsewhere"), name="tests")
    assert len({other.tag, NAMED.tag, USUAL.tag}) == 3


def test_the_environment_names_the_cluster_where_nobody_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RATION_CLUSTER", "tests")
    assert layout.Layout(CHECKOUT) == NAMED
    monkeypatch.delenv("RATION_CLUSTER")
    assert layout.Layout(CHECKOUT) == USUAL


@pytest.mark.parametrize("name", ["../x", "Tests", "1st", "a-b", "averylongname", " "])
def test_invalid_or_too_long_cluster_names_are_refused(name: str) -> None:
    with pytest.raises(errors.ClusterError, match="RATION_CLUSTER"):
        layout.Layout(CHECKOUT, name=name)


def test_sockets_of_the_longest_node_name_fit_their_path_whatever_the_cluster_s_name() -> None:
    usual, named = (len(str(item.node("n" * 20).socket)) for item in (USUAL, NAMED))
    assert named == usual < 107

"""Networks of named clusters, as root: nothing is booted in them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster import errors, layout, network, plan

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace is root's")
ADDRESS = "198.19.255.1"
ENTER = """
import subprocess, sys
from pathlib import Path
from hack.cluster import layout, network
where = layout.Layout(Path(sys.argv[1]), Path(sys.argv[1]), sys.argv[2])
moved = [network.enter(where), network.enter(where)]
print(moved)
sys.stdout.flush()
subprocess.run(sys.argv[3:], check=True)
"""


OUTSIDE = """
import subprocess, sys
from pathlib import Path
from hack.cluster import layout, network
where = layout.Layout(Path(sys.argv[1]), Path(sys.argv[1]), sys.argv[2])
show = ("readlink", "/proc/self/ns/net")
subprocess.run(network.outside(where, show), check=True)
network.enter(where)
subprocess.run(show, check=True)
subprocess.run(network.outside(where, show), check=True)
"""


@pytest.fixture
def cluster_layout(tmp_path: Path) -> Iterator[layout.Layout]:
    created = layout.Layout(tmp_path, tmp_path, "tests")
    try:
        yield created
    finally:
        network.remove(created)


def inside(location: layout.Layout, *command: str) -> tuple[str, str]:
    """Run a command in the cluster's network: how it got there, and what the command printed."""
    done = subprocess.run(
        [sys.executable, "-c", ENTER, str(location.checkout), location.name, *command],
        capture_output=True,
        text=True,
        check=True,
    )
    moved, _, printed = done.stdout.partition("\n")
    return moved, printed


def addresses(text: str) -> set[str]:
    return {entry["local"] for link in json.loads(text) for entry in link["addr_info"]}


SHOW = ("ip", "-json", "address", "show", "dev", "lo")


def test_a_process_started_inside_the_network_has_its_own_loopback(
    cluster_layout: layout.Layout,
) -> None:
    moved, text = inside(cluster_layout, *SHOW)
    assert moved == "[True, False]"
    assert "127.0.0.1" in addresses(text)
    assert "UP" in json.loads(text)[0]["flags"]


def test_addresses_stay_for_the_next_who_enters_and_nobody_else_has_them(
    cluster_layout: layout.Layout,
) -> None:
    inside(cluster_layout, "ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
    previous = subprocess.run(SHOW, capture_output=True, text=True, check=True).stdout
    inside(cluster_layout, "ip", "address", "add", "198.19.254.200/32", "dev", "lo")
    after = subprocess.run(SHOW, capture_output=True, text=True, check=True).stdout
    assert {ADDRESS, "198.19.254.200"} <= addresses(inside(cluster_layout, *SHOW)[1])
    assert "198.19.254.200" not in addresses(previous) | addresses(after)


def test_a_named_cluster_is_not_acted_on_from_outside(cluster_layout: layout.Layout) -> None:
    inside(cluster_layout, "true")
    assert not network.is_inside(cluster_layout)
    with pytest.raises(errors.ClusterError, match=r"hack\.cluster run --"):
        network.require(cluster_layout)


def test_a_cluster_without_a_name_has_the_machine_s_network(tmp_path: Path) -> None:
    usual = layout.Layout(tmp_path, tmp_path, "")
    assert not network.enter(usual)
    network.require(usual)
    assert not usual.network.exists()


def test_a_network_that_was_removed_leaves_nothing(cluster_layout: layout.Layout) -> None:
    inside(cluster_layout, "true")
    assert network.exists(cluster_layout)
    network.remove(cluster_layout)
    assert not cluster_layout.network.exists()
    assert str(cluster_layout.network) not in Path("/proc/self/mountinfo").read_text()
    network.remove(cluster_layout)


def test_a_command_that_reaches_an_index_runs_in_the_machines_network(
    cluster_layout: layout.Layout,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OUTSIDE, str(cluster_layout.checkout), cluster_layout.name],
        capture_output=True,
        text=True,
        check=True,
    )
    previous, inside_it, outside = done.stdout.split()
    assert previous == outside == str(Path("/proc/self/ns/net").readlink())
    assert inside_it != outside


def test_a_service_has_a_route_from_inside(cluster_layout: layout.Layout) -> None:
    _, text = inside(cluster_layout, "ip", "-json", "route", "get", plan.DNS_SERVICE)
    assert json.loads(text)[0]["dev"] == "lo"

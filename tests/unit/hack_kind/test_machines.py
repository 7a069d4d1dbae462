"""GPUs of a worker are services of the worker: they begin with the node, and again when it does."""

import configparser
from pathlib import Path

from hack.kind import layout, machines, up

ENTRIES = ["a==1 \\\n    --hash=sha256:1", "b-c==2 ; x == 'y' \\\n    --hash=sha256:2", "d==3"]


def unit(name: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(machines.units("0a1b")[name])
    return parser


def test_the_service_starts_with_the_node_and_whenever_it_ends() -> None:
    service = unit(machines.UNIT)
    assert service["Install"]["WantedBy"] == "multi-user.target"
    assert service["Service"]["Restart"] == "always"
    assert service["Service"]["ExecStart"].endswith("-m simulator run /machine")
    assert service["Service"]["RootDirectory"] == f"{layout.RUNTIME}/simulator-0a1b"
    assert service["Service"]["BindPaths"] == f"{layout.MACHINE}:/machine"


def test_a_node_that_starts_is_a_machine_that_boots_and_once_only() -> None:
    boot = unit("ration-gpus-boot.service")
    assert boot["Service"]["ExecStart"].endswith("-m simulator fault reboot /machine")
    assert (boot["Service"]["Type"], boot["Service"]["RemainAfterExit"]) == ("oneshot", "yes")
    assert unit(machines.UNIT)["Unit"]["After"] == "ration-gpus-boot.service"


def test_only_what_is_needed_is_taken_from_the_lock_with_its_hashes() -> None:
    assert machines.locked("\n".join(ENTRIES), {"b-c", "d"}) == "\n".join(ENTRIES[1:]) + "\n"


def test_the_simulators_packages_are_closed_under_requirements() -> None:
    needed = machines.closure(("pydantic",))
    assert {"pydantic", "pydantic-core", "typing-extensions"} <= needed
    assert "kubernetes" not in needed


def test_the_last_clusters_files_go_with_their_folder_and_not_before(tmp_path: Path) -> None:
    first, second = (layout.Layout(tmp_path, name) for name in ("first", "second"))
    for location in (first, second):
        location.machine("worker").mkdir(parents=True)
    up.clear(first)
    assert second.home.is_dir()
    up.clear(second)
    assert not second.dot.exists()


def test_the_kubeconfig_is_in_the_checkout_and_in_nobodys_home() -> None:
    location = layout.Layout(Path("/src"), "gpus")
    assert location.kubeconfig == Path("/src/.kind/gpus/kubeconfig")

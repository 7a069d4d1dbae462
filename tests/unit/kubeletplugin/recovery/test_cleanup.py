import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import errors, ids
from driver.kubeletplugin.cdi import model, store
from driver.kubeletplugin.recovery import cleanup

UID, OTHER = ids.ClaimUid("c1a1"), ids.ClaimUid("c2a2")
DRIVER = "gpu.ration.dev"


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A short one: a socket's path ends at 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="r") as folder:
        yield Path(folder)


@pytest.fixture
def node_paths(tmp_path: Path) -> cleanup.NodePaths:
    for folder in ("kubelet/plugins", "kubelet/plugins_registry", "cdi", "state"):
        (tmp_path / folder).mkdir(parents=True)
    return cleanup.NodePaths(DRIVER, tmp_path / "kubelet", tmp_path / "cdi", tmp_path / "state")


def write(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")


def listen(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    result = socket.socket(socket.AF_UNIX)
    result.bind(str(path))
    result.listen()
    return result


def files(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())


def spec(node_paths: cleanup.NodePaths, uid: str) -> Path:
    return store.SpecStore(node_paths.cdi_root, model.cdi_kind(DRIVER)).path(ids.ClaimUid(uid))


def used(node_paths: cleanup.NodePaths) -> None:
    """Leave what a plugin and a supervisor leave with one claim prepared, another taken back."""
    state = node_paths.state_dir
    write(
        state / "allocator",
        state / "locks" / "GPU-1.lock",
        state / "publishers" / "00000000000000000001-a",
        state / "mps" / "desired" / "key.json",
        spec(node_paths, UID),
        spec(node_paths, OTHER),
        node_paths.plugin / "dra-device-metadata" / UID / "gpu.json",
        node_paths.plugin / "dra-device-metadata" / OTHER / "gpu.json",
        node_paths.plugin / "dra-a.lock",
        node_paths.cdi_root / "gpu.example.com-gpu_c1a1.json",
    )
    listen(node_paths.plugin / "dra-a.sock").close()
    listen(node_paths.kubelet_root / "plugins_registry" / f"{DRIVER}-a-reg.sock").close()


def test_without_records_nothing_of_the_driver_stays(
    node_paths: cleanup.NodePaths, tmp_path: Path
) -> None:
    used(node_paths)
    assert cleanup.clear_node(node_paths) == ()
    assert files(tmp_path) == ["cdi/gpu.example.com-gpu_c1a1.json"]
    assert list(node_paths.state_dir.iterdir()) == []
    assert list((node_paths.kubelet_root / "plugins").iterdir()) == []
    assert list((node_paths.kubelet_root / "plugins_registry").iterdir()) == []


@pytest.mark.parametrize("record", [f"{UID}.json", f"{UID}.json.damaged-1", f".{UID}.json.new"])
def test_files_of_a_recorded_claim_stay(
    node_paths: cleanup.NodePaths, tmp_path: Path, record: str
) -> None:
    used(node_paths)
    write(node_paths.state_dir / "claims" / record)
    assert cleanup.clear_node(node_paths) == (UID,)
    assert files(tmp_path) == sorted(
        [
            "cdi/gpu.example.com-gpu_c1a1.json",
            f"cdi/{spec(node_paths, UID).name}",
            f"kubelet/plugins/{DRIVER}/dra-device-metadata/{UID}/gpu.json",
            f"state/claims/{record}",
            "state/mps/desired/key.json",
        ]
    )
    assert not list(tmp_path.rglob("*.sock"))


def test_a_node_where_a_plugin_answers_is_left_alone(
    node_paths: cleanup.NodePaths, tmp_path: Path
) -> None:
    used(node_paths)
    previous = files(tmp_path)
    with listen(node_paths.plugin / "dra-b.sock"), pytest.raises(errors.NodeFault, match="listens"):
        cleanup.clear_node(node_paths)
    assert files(tmp_path) == previous


def test_other_drivers_sockets_stay(node_paths: cleanup.NodePaths) -> None:
    theirs = node_paths.kubelet_root / "plugins_registry" / "gpu.example.com-reg.sock"
    with listen(theirs):
        cleanup.clear_node(node_paths)
    assert theirs.exists()


def test_a_node_that_never_had_a_plugin_is_clear(tmp_path: Path) -> None:
    nowhere = cleanup.NodePaths(DRIVER, tmp_path / "a", tmp_path / "b", tmp_path / "c")
    assert cleanup.clear_node(nowhere) == ()


def test_clearing_twice_is_clearing_once(node_paths: cleanup.NodePaths, tmp_path: Path) -> None:
    used(node_paths)
    write(node_paths.state_dir / "claims" / f"{UID}.json")
    cleanup.clear_node(node_paths)
    previous = files(tmp_path)
    assert cleanup.clear_node(node_paths) == (UID,)
    assert files(tmp_path) == previous


def test_the_process_says_what_stays(
    node_paths: cleanup.NodePaths, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [
        f"--kubelet-root={node_paths.kubelet_root}",
        f"--cdi-root={node_paths.cdi_root}",
        f"--state-dir={node_paths.state_dir}",
    ]
    assert cleanup.main(flags) == 0
    assert capsys.readouterr().out == "cleared: nothing stays\n"
    write(node_paths.state_dir / "claims" / f"{UID}.json")
    assert cleanup.main(flags) == 0
    assert capsys.readouterr().out == f"cleared: what claims {UID} have stays\n"
    with listen(node_paths.plugin / "dra-b.sock"):
        assert cleanup.main(flags) == 1
    assert "another process listens there" in capsys.readouterr().err

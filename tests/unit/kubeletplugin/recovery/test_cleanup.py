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
def place(tmp_path: Path) -> cleanup.NodePaths:
    for folder in ("kubelet/plugins", "kubelet/plugins_registry", "cdi", "state"):
        (tmp_path / folder).mkdir(parents=True)
    return cleanup.NodePaths(DRIVER, tmp_path / "kubelet", tmp_path / "cdi", tmp_path / "state")


def write(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")


def listen(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    found = socket.socket(socket.AF_UNIX)
    found.bind(str(path))
    found.listen()
    return found


def files(tmp_path: Path) -> list[str]:
    return sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if one.is_file())


def spec(place: cleanup.NodePaths, uid: str) -> Path:
    return store.SpecStore(place.cdi_root, model.cdi_kind(DRIVER)).path(ids.ClaimUid(uid))


def used(place: cleanup.NodePaths) -> None:
    """Leave what a plugin and a supervisor leave with one claim prepared, another taken back."""
    state = place.state_dir
    write(
        state / "allocator",
        state / "locks" / "GPU-1.lock",
        state / "publishers" / "00000000000000000001-a",
        state / "mps" / "desired" / "key.json",
        spec(place, UID),
        spec(place, OTHER),
        place.plugin / "dra-device-metadata" / UID / "gpu.json",
        place.plugin / "dra-device-metadata" / OTHER / "gpu.json",
        place.plugin / "dra-a.lock",
        place.cdi_root / "gpu.example.com-gpu_c1a1.json",
    )
    listen(place.plugin / "dra-a.sock").close()
    listen(place.kubelet_root / "plugins_registry" / f"{DRIVER}-a-reg.sock").close()


def test_without_records_nothing_of_the_driver_stays(
    place: cleanup.NodePaths, tmp_path: Path
) -> None:
    used(place)
    assert cleanup.clear_node(place) == ()
    assert files(tmp_path) == ["cdi/gpu.example.com-gpu_c1a1.json"]
    assert list(place.state_dir.iterdir()) == []
    assert list((place.kubelet_root / "plugins").iterdir()) == []
    assert list((place.kubelet_root / "plugins_registry").iterdir()) == []


@pytest.mark.parametrize("record", [f"{UID}.json", f"{UID}.json.damaged-1", f".{UID}.json.new"])
def test_what_a_claim_with_a_record_has_stays(
    place: cleanup.NodePaths, tmp_path: Path, record: str
) -> None:
    used(place)
    write(place.state_dir / "claims" / record)
    assert cleanup.clear_node(place) == (UID,)
    assert files(tmp_path) == sorted(
        [
            "cdi/gpu.example.com-gpu_c1a1.json",
            f"cdi/{spec(place, UID).name}",
            f"kubelet/plugins/{DRIVER}/dra-device-metadata/{UID}/gpu.json",
            f"state/claims/{record}",
            "state/mps/desired/key.json",
        ]
    )
    assert not list(tmp_path.rglob("*.sock"))


def test_a_node_where_a_plugin_answers_is_left_alone(
    place: cleanup.NodePaths, tmp_path: Path
) -> None:
    used(place)
    before = files(tmp_path)
    with listen(place.plugin / "dra-b.sock"), pytest.raises(errors.NodeFault, match="listens"):
        cleanup.clear_node(place)
    assert files(tmp_path) == before


def test_other_drivers_sockets_stay(place: cleanup.NodePaths) -> None:
    theirs = place.kubelet_root / "plugins_registry" / "gpu.example.com-reg.sock"
    with listen(theirs):
        cleanup.clear_node(place)
    assert theirs.exists()


def test_a_node_that_never_had_a_plugin_is_clear(tmp_path: Path) -> None:
    nowhere = cleanup.NodePaths(DRIVER, tmp_path / "a", tmp_path / "b", tmp_path / "c")
    assert cleanup.clear_node(nowhere) == ()


def test_clearing_twice_is_clearing_once(place: cleanup.NodePaths, tmp_path: Path) -> None:
    used(place)
    write(place.state_dir / "claims" / f"{UID}.json")
    cleanup.clear_node(place)
    before = files(tmp_path)
    assert cleanup.clear_node(place) == (UID,)
    assert files(tmp_path) == before


def test_the_process_says_what_stays(
    place: cleanup.NodePaths, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [
        f"--kubelet-root={place.kubelet_root}",
        f"--cdi-root={place.cdi_root}",
        f"--state-dir={place.state_dir}",
    ]
    assert cleanup.main(flags) == 0
    assert capsys.readouterr().out == "cleared: nothing stays\n"
    write(place.state_dir / "claims" / f"{UID}.json")
    assert cleanup.main(flags) == 0
    assert capsys.readouterr().out == f"cleared: what claims {UID} have stays\n"
    with listen(place.plugin / "dra-b.sock"):
        assert cleanup.main(flags) == 1
    assert "another process listens there" in capsys.readouterr().err

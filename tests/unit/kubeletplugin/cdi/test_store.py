from pathlib import Path

import pytest

from driver import errors, ids
from driver.kubeletplugin.cdi import store
from tests.fakes import gpunode

UID = ids.ClaimUid("uid-1")


def test_a_spec_is_readable_by_all_in_a_folder_made_for_it(tmp_path: Path) -> None:
    spec_store = store.SpecStore(tmp_path / "cdi", "gpu.ration.dev/claim")
    spec_store.write(UID, b"{}")
    path = tmp_path / "cdi/gpu.ration.dev-claim_uid-1.json"
    assert path.read_bytes() == b"{}"
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.parent.stat().st_mode & 0o777 == 0o755


def test_a_runtime_never_sees_half_a_spec(tmp_path: Path) -> None:
    store.SpecStore(tmp_path, "gpu.ration.dev/claim").write(UID, b"old")
    with pytest.raises(gpunode.Killed):
        store.SpecStore(tmp_path, "gpu.ration.dev/claim", gpunode.DiesAt(0)).write(UID, b"new")
    seen = {path.name: path.read_bytes() for path in tmp_path.glob("*.json")}
    assert seen == {"gpu.ration.dev-claim_uid-1.json": b"old"}
    assert [path.suffix for path in tmp_path.iterdir() if path.name.startswith(".")] == [".new"]


def test_only_specs_of_ours_are_listed(tmp_path: Path) -> None:
    spec_store = store.SpecStore(tmp_path, "gpu.ration.dev/claim")
    spec_store.write(UID, b"{}")
    for name in ("nvidia.yaml", "gpu.ration.dev-claim_.json", "gpu.ration.dev-claim_a b.json"):
        (tmp_path / name).touch()
    (tmp_path / ".gpu.ration.dev-claim_uid-2.json.new").touch()
    assert spec_store.uids() == ("uid-1", "uid-2")
    spec_store.remove(UID)
    spec_store.remove(ids.ClaimUid("uid-2"))
    assert spec_store.uids() == ()


def test_a_uid_never_leaves_the_folder(tmp_path: Path) -> None:
    with pytest.raises(errors.BadInput, match="claim UID"):
        store.SpecStore(tmp_path, "gpu.ration.dev/claim").path(ids.ClaimUid("../x"))

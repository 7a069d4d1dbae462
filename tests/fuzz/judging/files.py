"""Files of the node: records, CDI specs, what is wanted of MPS daemons."""

import hashlib
import tempfile
from pathlib import Path

from driver import ids
from driver.devices import mps_files as device_mps_files
from driver.kubeletplugin.cdi import allow, model
from driver.kubeletplugin.records import checkpoint
from tests.fuzz.judging import refusing

UID = ids.ClaimUid("5c7d1f6e-0000-4000-8000-000000000001")
LIMITS = allow.Limits("DRIVER", "/var/lib/ration/mps", "/usr/bin/nvidia-cdi-hook", "/metadata", "/")


def record(data: bytes) -> None:
    """Check the bytes as they are, and with the checksum that would make them one of ours."""
    digest = hashlib.sha256(data).hexdigest().encode()
    for written in (data, b'{"record":' + data + b',"sha256":"' + digest + b'"}\n'):
        with tempfile.TemporaryDirectory() as folder:
            _record(Path(folder), written)


def _record(folder: Path, written: bytes) -> None:
    path = folder / f"{UID}.json"
    path.write_bytes(written)
    records = checkpoint.Checkpoint(folder, "boot")
    with refusing.refusals():
        result = records.read(UID)
        if result is None:
            assert not path.exists()
            assert records.damaged_uids() == (UID,)
            return
        assert result.uid == UID
        result.response()
        done = records.write_completed(result, result.facts)
        assert records.read(UID) == done
        assert (done.devices, done.steps) == (result.devices, result.steps)
    assert path.exists()


def spec(data: bytes) -> None:
    assert all(0 <= gpu_minor <= 999 for gpu_minor in model.gpu_minors(data))
    text = data.decode(errors="replace")
    with refusing.refusals():
        parsed = model.parse(text, LIMITS)
        written = model.render_canonical(parsed)
        again = model.parse(written.decode(), LIMITS)
        assert model.render_canonical(again) == written
        assert_harmless(parsed)


def assert_harmless(result: model.Spec) -> None:
    """Assert the purpose of the allow-list, independently of its code."""
    for edits in result.all_edits:
        for node in edits.deviceNodes:
            assert node.path.startswith("/dev/nvidia")
            assert ".." not in node.path
            assert (node.hostPath or node.path).endswith(node.path)
        for mount in edits.mounts:
            assert ".." not in mount.hostPath.split("/")
            assert ".." not in mount.containerPath.split("/")
            assert mount.hostPath.startswith(("DRIVER/", "/var/lib/ration/mps/", "/metadata/"))
        for variable in edits.env:
            name, _, value = variable.partition("=")
            assert name.startswith(("NVIDIA_", "CUDA_", "RATION_"))
            assert "\n" not in value
        assert {hook.path for hook in edits.hooks} <= {LIMITS.program}


def mps_files(data: bytes) -> None:
    for kind in (device_mps_files.Desired, device_mps_files.Status):
        with refusing.refusals():
            written = kind.parse(data, "a file").render()
            # Bytes, for what is no JSON number in a field that is not known is written as null.
            assert kind.parse(written, "a file").render() == written

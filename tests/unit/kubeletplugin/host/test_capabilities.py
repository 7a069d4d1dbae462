from pathlib import Path

import pytest

from driver import errors
from driver.kubeletplugin.host import capabilities

DEVICES = "Character devices:\n  1 mem\n195 nvidia\n237 nvidia-caps\n\nBlock devices:\n  8 sd\n"
GI = "driver/nvidia/capabilities/gpu2/mig/gi7/access"
CI = "driver/nvidia/capabilities/gpu2/mig/gi7/ci0/access"
MINORS = "driver/nvidia-caps/mig-minors"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A host's; the minors are what the files say, whatever the rule behind them."""
    proc = tmp_path / "proc"
    write(proc, "devices", DEVICES)
    write(proc, GI, "DeviceFileMinor: 900\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
    write(proc, CI, "DeviceFileMinor: 31\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
    write(proc, MINORS, "config 1\ngpu2/gi7/access 900\ngpu2/gi7/ci0/access 31\n")
    return proc


def write(proc: Path, name: str, text: str) -> None:
    path = proc / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def numbers(proc: Path) -> tuple[capabilities.Numbers, ...]:
    return capabilities.Capabilities(proc.parent).instance_minors(2, 7, 0)


def test_numbers_are_what_the_files_say(proc: Path) -> None:
    assert numbers(proc) == ((237, 900), (237, 31))


def test_an_instance_that_mig_minors_does_not_list_is_taken_at_its_own_word(proc: Path) -> None:
    write(proc, MINORS, "config 1\n")
    assert numbers(proc) == ((237, 900), (237, 31))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("devices", DEVICES.replace("nvidia-caps", "other"), "lists no nvidia-caps"),
        ("devices", "Block devices:\n237 nvidia-caps\n", "lists no nvidia-caps"),
        (CI, "DeviceFileMode: 292\n", "has no line DeviceFileMinor:"),
        (CI, "DeviceFileMinor: one\n", "'one' is no number"),
        (CI, "DeviceFileMinor: -1\n", "'-1' is no number"),
        (MINORS, "gpu2/gi7/ci0/access 32\n", "says minor 31, mig-minors beside it 32"),
    ],
)
def test_files_that_make_no_sense_are_named(proc: Path, name: str, text: str, problem: str) -> None:
    write(proc, name, text)
    with pytest.raises(errors.NodeFault, match=problem) as raised:
        numbers(proc)
    if name != MINORS:
        assert raised.value.path == str(proc / name)


@pytest.mark.parametrize("name", ["devices", GI, CI, MINORS])
def test_files_that_are_not_there_are_named(proc: Path, name: str) -> None:
    (proc / name).unlink()
    with pytest.raises(errors.NodeFault, match="No such file"):
        numbers(proc)

from pathlib import Path

import pytest

from driver.resources import gpu_nodes
from tests.e2e.beside import program

FOUND = "feature.node.kubernetes.io/pci-10de.present"
DEVICE_PLUGIN = "nvidia.com/gpu.deploy.device-plugin"


def a_device(root: Path, address: str, kind: str, vendor: str) -> None:
    folder = root / "bus/pci/devices" / address
    folder.mkdir(parents=True)
    (folder / "class").write_text(f"0x{kind}\n")
    (folder / "vendor").write_text(f"0x{vendor}\n")


def test_devices_are_labelled_by_the_fields_and_classes_of_the_configuration(
    tmp_path: Path,
) -> None:
    a_device(tmp_path, "0000:01:00.0", "030200", "10de")
    a_device(tmp_path, "0000:02:00.0", "020000", "15b3")
    usual = program.pci_labels(tmp_path, {})
    assert usual == {"feature.node.kubernetes.io/pci-0302_10de.present": "true"}
    document = {"deviceClassWhitelist": ["0302"], "deviceLabelFields": ["vendor"]}
    assert program.pci_labels(tmp_path, {"sources": {"pci": document}}) == {FOUND: "true"}
    assert gpu_nodes.has_gpu_label(usual)


def test_a_node_without_devices_has_no_label(tmp_path: Path) -> None:
    assert program.pci_labels(tmp_path, {}) == {}


def test_labels_of_files_are_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "gfd").write_text("nvidia.com/gpu.count=8\nno label\n")
    assert program.local_labels(tmp_path) == {"nvidia.com/gpu.count": "8"}


def test_the_operator_labels_a_node_with_gpus_and_keeps_explicit_labels() -> None:
    change = program.operators_change({FOUND: "true", DEVICE_PLUGIN: "false"})
    assert change["nvidia.com/gpu.present"] == "true"
    assert change["nvidia.com/gpu.deploy.dcgm-exporter"] == "true"
    assert DEVICE_PLUGIN not in change
    assert program.MIG_MANAGER not in change
    after = {FOUND: "true", DEVICE_PLUGIN: "false", "nvidia.com/mig.capable": "true"}
    assert program.operators_change(after)[program.MIG_MANAGER] == "true"


def test_the_operator_takes_its_labels_off_a_node_without_gpus_or_operands() -> None:
    labels = {"nvidia.com/gpu.present": "true", DEVICE_PLUGIN: "true"}
    assert program.operators_change(labels) == {
        "nvidia.com/gpu.present": "false",
        DEVICE_PLUGIN: None,
    }
    off = {**labels, FOUND: "true", "nvidia.com/gpu.deploy.operands": "false"}
    assert program.operators_change(off) == {DEVICE_PLUGIN: None}
    assert program.operators_change({"kubernetes.io/os": "linux"}) == {}


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 70000])
def test_fields_of_a_message_are_read_as_they_were_written(size: int) -> None:
    written = [b"x" * size, b"GPU-1"]
    message = b"".join(program.field(1, data) for data in written)
    assert program.strings(message) == written

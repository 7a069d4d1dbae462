import os
from pathlib import Path

import pytest

from driver.runtime.files import driver_programs, driver_search
from simulator import builder, compiler, layout, machine, profile, store


@pytest.fixture(scope="module")
def machine_layout(tmp_path_factory: pytest.TempPathFactory) -> layout.Layout:
    base = tmp_path_factory.mktemp("machine")
    builder.build(base, store.create(base, "hgx-h100", "node-1"))
    return layout.Layout(base)


def test_libraries_are_found_by_version_and_by_soname(machine_layout: layout.Layout) -> None:
    result = {path.name: path.is_symlink() for path in machine_layout.libraries.iterdir()}
    assert result == {
        "libcuda.so": True,
        "libcuda.so.1": True,
        "libcuda.so.580.105.08": False,
        "libnvidia-ml.so.1": True,
        "libnvidia-ml.so.580.105.08": False,
    }


def test_the_pcie_root_is_read_from_the_link_of_a_device(machine_layout: layout.Layout) -> None:
    link = machine_layout.host_root / "sys/bus/pci/devices/0000:97:00.0"
    assert "/pci0000:94/" in os.path.realpath(link)
    assert (link / "numa_node").read_text() == "1\n"
    assert (link / "vendor").read_text() == "0x10de\n"
    assert (link / "device").read_text() == "0x2330\n"


# Covers SIM-2.
def test_a_pci_device_has_its_driver_its_resources_and_its_configuration(
    machine_layout: layout.Layout,
) -> None:
    """NVIDIA's nvpci library reads them, and gives a GPU up that lacks one."""
    folder = machine_layout.host_root / "sys/bus/pci/devices/0000:97:00.0"
    assert Path(os.path.realpath(folder / "driver")).name == "nvidia"
    rows = [line.split() for line in (folder / "resource").read_text().splitlines()]
    sizes = [int(end, 16) - int(start, 16) + 1 for start, end, _ in rows if int(end, 16)]
    assert (len(rows), sizes) == (13, [16 << 20, 131_072 << 20, 32 << 20])
    configuration = (folder / "config").read_bytes()
    assert configuration[:4] == bytes.fromhex("de103023")
    assert configuration[configuration[0x34]] == 0x10  # PCI Express
    assert (folder / "modalias").read_text().startswith("pci:v000010DEd00002330sv000010DE")


def test_proc_tells_the_boot_the_driver_and_the_majors(machine_layout: layout.Layout) -> None:
    proc = machine_layout.host_root / "proc"
    built = machine.build("hgx-h100", seed="node-1")
    assert (proc / "sys/kernel/random/boot_id").read_text() == f"{built.boot_id}\n"
    assert "580.105.08" in (proc / "driver/nvidia/version").read_text()
    assert "511 nvidia-uvm\n" in (proc / "devices").read_text()
    about = (proc / "driver/nvidia/gpus/0000:53:00.0/information").read_text()
    assert built.gpus[0].uuid in about


def test_every_gpu_and_the_control_devices_have_a_node(machine_layout: layout.Layout) -> None:
    names = {path.name for path in (machine_layout.driver_root / "dev").iterdir()}
    shared = {"nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps"}
    kernels = {"null", "zero", "full", "random", "urandom", "shm"}
    assert names == {f"nvidia{n}" for n in range(8)} | shared | kernels


def test_the_root_has_the_loader_and_the_libc_that_its_programs_take(
    machine_layout: layout.Layout,
) -> None:
    program = driver_programs.find_program(
        driver_search.Search((machine_layout.driver_root,)), "nvidia-smi"
    )
    assert program.root == machine_layout.driver_root
    assert all(
        (machine_layout.driver_root / path.relative_to("/")).is_file() for path in compiler.system()
    )


def test_a_machine_is_created_once(machine_layout: layout.Layout) -> None:
    with pytest.raises(store.MachineDirectoryError, match="already"):
        store.create(machine_layout.base, "hgx-h100", "other")


def test_a_directory_without_a_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(store.MachineDirectoryError, match="holds no machine"):
        store.load(tmp_path)


def test_a_broken_state_is_refused(tmp_path: Path) -> None:
    store.create(tmp_path, "hgx-h100", "node-1")
    layout.Layout(tmp_path).state.write_text('{"boots": "many"}')
    with pytest.raises(store.MachineDirectoryError, match="broken machine"):
        store.load(tmp_path)


def test_an_excluded_gpu_is_on_the_bus_and_has_no_node(tmp_path: Path) -> None:
    text = profile.text_of("l4").replace("minor: 2,", "minor: 2, excluded: true,")
    named = tmp_path / "excluding.yaml"
    named.write_text(text)
    builder.build(tmp_path / "machine", store.create(tmp_path / "machine", str(named), "node-1"))
    position = layout.Layout(tmp_path / "machine")
    assert {path.name for path in (position.driver_root / "dev").glob("nvidia[0-9]*")} == {
        f"nvidia{minor}" for minor in (0, 1, 3, 4, 5, 6, 7)
    }
    assert (position.host_root / "sys/bus/pci/devices/0000:39:00.0").is_symlink()

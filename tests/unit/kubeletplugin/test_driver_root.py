import os
from pathlib import Path

import pytest

from driver import errors
from driver.kubeletplugin import driver_root
from tests.fakes import gpunode


@pytest.fixture
def root(tmp_path: Path) -> Path:
    gpunode.a_driver_root(tmp_path / "root")
    return tmp_path / "root"


def opened(root: Path) -> driver_root.DriverRoot:
    return driver_root.DriverRoot(root, lambda path: gpunode.CONTROL.get(path.name))


def mounted(root: Path) -> dict[str, str]:
    return {m.container_path: m.host_path for m in opened(root).files().mounts}


def test_each_library_is_given_under_every_name_it_goes_by(root: Path) -> None:
    folder = root / gpunode.LIBRARIES
    cuda, nvml = folder / "libcuda.so.580.105.08", folder / "libnvidia-ml.so.580.105.08"
    place = "/usr/lib/x86_64-linux-gnu"
    assert mounted(root) == {
        f"{place}/libcuda.so.580.105.08": str(cuda),
        f"{place}/libcuda.so.1": str(cuda),
        f"{place}/libcuda.so": str(cuda),
        f"{place}/libnvidia-ml.so.580.105.08": str(nvml),
        f"{place}/libnvidia-ml.so.1": str(nvml),
        "/usr/bin/nvidia-smi": str(root / "usr/bin/nvidia-smi"),
        "/run/nvidia-persistenced": str(root / "run/nvidia-persistenced"),
    }


def test_a_library_folder_without_a_triplet_ends_in_the_machines_own(root: Path) -> None:
    (root / "usr/lib64").mkdir()
    for path in (root / gpunode.LIBRARIES).iterdir():
        path.rename(root / "usr/lib64" / path.name)
    place = f"/usr/lib/{os.uname().machine}-linux-gnu/libcuda.so.1"
    assert mounted(root)[place] == str(root / "usr/lib64/libcuda.so.580.105.08")


def test_control_devices_that_exist_have_their_own_numbers(root: Path) -> None:
    nodes = {node.path: (node.major, node.minor) for node in opened(root).files().nodes}
    assert nodes == {f"/dev/{name}": numbers for name, numbers in gpunode.CONTROL.items()}
    bare = driver_root.DriverRoot(root).files()
    assert bare.nodes == ()


def test_optional_files_are_skipped_and_required_ones_named(root: Path) -> None:
    (root / "usr/bin/nvidia-smi").unlink()
    (root / "run/nvidia-persistenced").rmdir()
    assert all(path.startswith("/usr/lib/") for path in mounted(root))
    (root / gpunode.LIBRARIES / "libcuda.so.1").unlink()
    with pytest.raises(driver_root.DriverNotReady, match=r"libcuda\.so\.1"):
        opened(root).files()


def test_an_optional_library_that_is_there_is_given(root: Path) -> None:
    (root / gpunode.LIBRARIES / "libnvidia-ptxjitcompiler.so.1").write_bytes(b"")
    assert "/usr/lib/x86_64-linux-gnu/libnvidia-ptxjitcompiler.so.1" in mounted(root)


def test_absolute_links_stay_inside_the_root(root: Path) -> None:
    link = root / gpunode.LIBRARIES / "libcuda.so.1"
    link.unlink()
    link.symlink_to(f"/{gpunode.LIBRARIES}/libcuda.so.580.105.08")
    real = root / gpunode.LIBRARIES / "libcuda.so.580.105.08"
    assert opened(root).library("libcuda.so.1") == real


def test_links_that_climb_stay_inside_the_root(root: Path) -> None:
    (root / "etc").mkdir()
    (root / "etc/x").symlink_to("../../../../../../etc/passwd")
    assert opened(root).resolve("etc/x") == root / "etc/passwd"


def test_links_in_a_circle_are_a_fault(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(errors.NodeFault, match="too many links"):
        opened(root).resolve("a")


def test_a_plain_file_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    assert driver_root.device_numbers(tmp_path / "x") is None
    assert driver_root.device_numbers(tmp_path / "y") is None
    assert driver_root.device_numbers(Path("/dev/null")) == (1, 3)

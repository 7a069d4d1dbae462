"""Tests of the path of a driver program and its file system, by the files present."""

from pathlib import Path

import pytest

from driver import errors
from driver.runtime.files import driver_programs, driver_search

SMI = "nvidia-smi"
CONTROL = "nvidia-cuda-mps-control"
LOADER = driver_programs.LOADERS[0]


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A node's file system as a plugin sees it, with a loader."""
    put(tmp_path / "host", LOADER)
    return tmp_path / "host"


def put(root: Path, *files: str) -> None:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def find(host: Path, name: str = SMI, setting: driver_search.Setting = "auto") -> tuple[str, ...]:
    """The file system below the host's, the program's path in it, and its libraries' folders."""
    program = driver_programs.find_program(driver_search.build_search(setting, host), name)
    libraries = program.environment.get("LD_LIBRARY_PATH", "")
    return str(program.root.relative_to(host)), program.path, libraries


def test_a_driver_on_the_host_runs_in_the_hosts_file_system(host: Path) -> None:
    put(host, f"usr/bin/{SMI}", "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")
    assert find(host) == (".", "/usr/bin/nvidia-smi", "/usr/lib/x86_64-linux-gnu")


def test_a_driver_container_is_a_file_system_of_its_own(host: Path) -> None:
    put(host / "run/nvidia/driver", f"usr/bin/{SMI}", "usr/lib64/libnvidia-ml.so.1", LOADER)
    assert find(host) == ("run/nvidia/driver", "/usr/bin/nvidia-smi", "/usr/lib64")


#
@pytest.mark.parametrize(
    ("folder", "program", "libraries"),
    [
        ("home/kubernetes/bin/nvidia", "bin", "lib64"),
        ("usr/local", "bin", "glibc/usr/lib"),
        ("usr/local", "glibc/usr/bin", "glibc/usr/lib64"),
        ("usr/local", "bin", "lib"),
    ],
    ids=["Container-Optimized OS", "Talos", "Talos, newer", "Talos, between"],
)
def test_a_folder_without_a_loader_is_a_part_of_the_host(
    host: Path, folder: str, program: str, libraries: str
) -> None:
    put(host / folder, f"{program}/{SMI}", f"{libraries}/libnvidia-ml.so.1")
    assert find(host) == (".", f"/{folder}/{program}/{SMI}", f"/{folder}/{libraries}")


@pytest.mark.parametrize(
    ("program", "libraries"),
    [
        ("usr/libexec/nvidia/tesla/bin", "usr/lib/nvidia/tesla"),
        ("opt/nvidia/current/bin", "opt/nvidia/current/lib64"),
        ("opt/nvidia/current/usr/bin", "opt/nvidia/current/usr/lib64"),
    ],
    ids=["Bottlerocket", "Flatcar", "Flatcar, by usr"],
)
def test_a_driver_in_folders_of_its_own_on_the_host_is_found(
    host: Path, program: str, libraries: str
) -> None:
    put(host, f"{program}/{SMI}", f"{libraries}/libnvidia-ml.so.1")
    assert find(host) == (".", f"/{program}/{SMI}", f"/{libraries}")


def test_libraries_in_two_folders_are_both_named(host: Path) -> None:
    put(host, f"usr/bin/{SMI}", "usr/lib64/libnvidia-ml.so.1", "usr/lib/libcuda.so.1")
    assert find(host)[2] == "/usr/lib64:/usr/lib"


def test_a_program_without_its_loader_runs_with_ours(tmp_path: Path) -> None:
    put(tmp_path / "driver", f"usr/bin/{CONTROL}", "usr/lib64/libnvidia-ml.so.1")
    search = driver_search.build_search(tmp_path / "driver", tmp_path / "host")
    program = driver_programs.find_program(search, CONTROL)
    assert program.root == Path("/")
    assert program.path == f"{tmp_path}/driver/usr/bin/{CONTROL}"


def test_a_program_is_looked_for_beside_its_path_too(host: Path) -> None:
    put(host, f"usr/bin/{SMI}", "usr/lib64/libnvidia-ml.so.1")
    program = driver_programs.find_program(driver_search.build_search("auto", host), SMI)
    assert program.environment["PATH"].startswith("/usr/bin:/usr/local/sbin:")


def test_a_link_is_left_for_the_file_system_it_is_of(host: Path) -> None:
    put(host, f"usr/lib/nvidia/current/{SMI}", "usr/lib64/libnvidia-ml.so.1")
    (host / "usr/bin").mkdir()
    (host / f"usr/bin/{SMI}").symlink_to(f"/usr/lib/nvidia/current/{SMI}")
    assert find(host)[1] == "/usr/bin/nvidia-smi"


def test_a_driver_without_the_program_is_named_with_its_folders(host: Path) -> None:
    put(host, "usr/lib64/libnvidia-ml.so.1")
    with pytest.raises(errors.NodeFault, match=rf"find {CONTROL}: {host} has none \(yet\) in usr/"):
        find(host, CONTROL)


def test_without_a_driver_every_place_is_named(host: Path) -> None:
    with pytest.raises(errors.NodeFault, match="looked in 4 places"):
        find(host)

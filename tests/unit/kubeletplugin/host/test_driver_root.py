from pathlib import Path

import pytest

from driver import errors
from driver.kubeletplugin.host import driver_root
from driver.runtime.files import driver_search
from tests.fakes import gpunode


@pytest.fixture
def root(tmp_path: Path) -> Path:
    gpunode.a_driver_root(tmp_path / "root")
    return tmp_path / "root"


def opened(root: Path) -> driver_root.DriverRoot:
    return driver_root.DriverRoot(root, lambda path: gpunode.CONTROL.get(path.name))


def test_a_device_has_its_own_numbers(root: Path) -> None:
    node = opened(root).node("nvidia-uvm")
    assert node is not None
    assert (node.path, node.major, node.minor) == ("/dev/nvidia-uvm", 511, 0)
    assert driver_root.DriverRoot(root).node("nvidia-uvm") is None


def test_a_required_library_that_is_missing_is_named(root: Path) -> None:
    (root / gpunode.LIBRARIES / "libcuda.so.1").unlink()
    with pytest.raises(driver_root.DriverNotReady, match=r"libcuda\.so\.1"):
        opened(root).require("libcuda.so.1")


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


@pytest.mark.parametrize(
    ("root", "host", "seen", "expected"),
    [
        ("/host", "/host", "/host/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1"),
        ("/host/run/nvidia/driver", "/host", "/host/run/nvidia/x", "/run/nvidia/x"),
        ("/host/run/nvidia/driver", "/host", "/host/dev/nvidia0", "/dev/nvidia0"),
        ("/host", "/host", "/hosts/x", "/hosts/x"),
        ("/run/nvidia/driver", "/host", "/run/nvidia/driver/x", "/run/nvidia/driver/x"),
        ("/run/nvidia/driver", "/", "/run/nvidia/driver/x", "/run/nvidia/driver/x"),
        ("/", "/", "/usr/lib/x", "/usr/lib/x"),
        ("/host", None, "/host/usr/lib/x", "/host/usr/lib/x"),
    ],
)
def test_a_root_below_the_hosts_is_on_the_host_without_it(
    root: str, host: str | None, seen: str, expected: str
) -> None:
    opened = driver_root.DriverRoot(Path(root), host=Path(host) if host else None)
    assert opened.host_path(seen) == expected


def test_a_device_that_the_root_lacks_is_the_hosts(root: Path, tmp_path: Path) -> None:
    present = {tmp_path / "host/dev/nvidiactl": (195, 255)}
    node = driver_root.DriverRoot(root, present.get, tmp_path / "host").node("nvidiactl")
    assert node is not None
    assert node.host_path == str(tmp_path / "host/dev/nvidiactl")
    assert driver_root.DriverRoot(root, present.get).node("nvidiactl") is None


def test_a_plain_file_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    assert driver_root.device_numbers(tmp_path / "x") is None
    assert driver_root.device_numbers(tmp_path / "y") is None
    assert driver_root.device_numbers(Path("/dev/null")) == (1, 3)


def test_a_root_that_is_looked_for_is_the_one_that_has_the_driver(tmp_path: Path) -> None:
    root = driver_root.DriverRoot(driver_search.build_search("auto", tmp_path), host=tmp_path)
    with pytest.raises(driver_root.DriverNotReady, match=r"/usr/local is not there$"):
        root.require("libnvidia-ml.so.1")
    path = tmp_path / "run/nvidia/driver"
    gpunode.a_driver_root(path)
    require = root.require("libnvidia-ml.so.1")
    assert require == path / gpunode.LIBRARIES / f"libnvidia-ml.so.{gpunode.VERSION}"
    assert root.path == path
    assert root.host_path(str(require)) == f"/run/nvidia/driver/{require.relative_to(path)}"

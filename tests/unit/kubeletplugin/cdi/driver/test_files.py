import os
from pathlib import Path

import pytest

from driver.kubeletplugin.cdi.driver import files as driver_files
from driver.kubeletplugin.host import device_node, driver_root
from driver.runtime.files import container_toolkit
from tests.fakes import clock, gpunode, toolkits

PLACE = "/usr/lib/x86_64-linux-gnu"
VERSION = gpunode.VERSION
HOOK = "/usr/bin/nvidia-cdi-hook"
NODE = device_node.DeviceNode("/dev/nvidia0", "/dev/nvidia0", 195, 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    gpunode.a_driver_root(tmp_path / "root")
    return tmp_path / "root"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "host").mkdir()
    return tmp_path / "host"


def opened(root: Path, hook: str = "auto") -> driver_files.DriverFiles:
    driver = gpunode.with_control_nodes(root)
    return driver_files.DriverFiles(
        driver, root.parent / "host", hook, after(root, 60), toolkits.ask
    )


def after(root: Path, seconds: float) -> clock.FakeClock:
    """Return the moment that many seconds after the installation; it takes two to settle."""
    fake_clock = clock.FakeClock()
    fake_clock.advance((root / "usr/bin").stat().st_mtime + seconds - clock.START.timestamp())
    return fake_clock


def mounted(root: Path) -> dict[str, str]:
    return {m.container_path: m.host_path for m in opened(root).read().mounts}


def a_hook(host: Path, path: str = HOOK, says: str = "") -> None:
    gpunode.write(host / path.lstrip("/"), says)


def hooks(root: Path) -> dict[str, tuple[str, ...]]:
    return {hook.arguments[1]: hook.arguments[2:] for hook in opened(root).read().hooks}


def a_library(root: Path, name: str, *links: str) -> Path:
    """A library of the driver, and links to it beside it."""
    path = root / gpunode.LIBRARIES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF")
    for link in links:
        (path.parent / link).symlink_to(path.name)
    return path


def test_each_library_is_given_under_every_name_it_goes_by(root: Path) -> None:
    folder = root / gpunode.LIBRARIES
    cuda, nvml = folder / f"libcuda.so.{VERSION}", folder / f"libnvidia-ml.so.{VERSION}"
    names = {
        f"libcuda.so.{VERSION}": str(cuda),
        "libcuda.so.1": str(cuda),
        "libcuda.so": str(cuda),
        f"libnvidia-ml.so.{VERSION}": str(nvml),
        "libnvidia-ml.so.1": str(nvml),
    }
    # Debian's and Ubuntu's loader; that of RHEL, UBI, openSUSE; LD_LIBRARY_PATH of NVIDIA's images.
    folders = (PLACE, "/usr/lib64", "/usr/local/nvidia/lib64")
    assert mounted(root) == {
        **{f"{folder}/{name}": real for folder in folders for name, real in names.items()},
        "/usr/bin/nvidia-smi": str(root / "usr/bin/nvidia-smi"),
        "/run/nvidia-persistenced/socket": str(root / "run/nvidia-persistenced/socket"),
    }


def test_a_library_folder_without_a_triplet_ends_in_the_machines_own(root: Path) -> None:
    (root / "usr/lib64").mkdir()
    for path in (root / gpunode.LIBRARIES).iterdir():
        path.rename(root / "usr/lib64" / path.name)
    location = f"/usr/lib/{os.uname().machine}-linux-gnu/libcuda.so.1"
    assert mounted(root)[location] == str(root / f"usr/lib64/libcuda.so.{VERSION}")


def test_control_devices_that_exist_have_their_own_numbers(root: Path) -> None:
    nodes = {node.path: (node.major, node.minor) for node in opened(root).read().nodes}
    assert nodes == {f"/dev/{name}": numbers for name, numbers in gpunode.CONTROL.items()}


def a_kernel(host: Path, *drivers: str) -> None:
    lines = "".join(f"{driver}\n" for driver in ("  1 mem", *drivers))
    text = f"Character devices:\n{lines}\nBlock devices:\n  9 nvidia-uvm\n"
    gpunode.write(host / "proc/devices", text)


def without(root: Path, *names: str) -> driver_files.DriverFiles:
    """On a machine that lacks control devices."""
    numbers = {name: numbers for name, numbers in gpunode.CONTROL.items() if name not in names}
    driver = driver_root.DriverRoot(root, lambda path: numbers.get(path.name))
    return driver_files.DriverFiles(driver, root.parent / "host", time=after(root, 60))


def test_control_devices_that_are_missing_have_the_numbers_of_the_kernel(
    root: Path, host: Path
) -> None:
    a_kernel(host, "195 nvidia", "195 nvidiactl", "507 nvidia-uvm")
    common = without(root, "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset").read()
    assert {node.path: (node.major, node.minor) for node in common.nodes} == {
        "/dev/nvidiactl": (195, 255),
        "/dev/nvidia-uvm": (507, 0),
        "/dev/nvidia-uvm-tools": (507, 1),
    }


def test_before_550_the_kernel_has_another_name_for_it(root: Path, host: Path) -> None:
    a_kernel(host, "195 nvidia-frontend", "507 nvidia-uvm")
    assert ("/dev/nvidiactl", 195, 255) in {
        (node.path, node.major, node.minor) for node in without(root, "nvidiactl").read().nodes
    }


def test_without_the_kernels_module_the_driver_is_not_ready(root: Path, host: Path) -> None:
    a_kernel(host, "195 nvidia")
    with pytest.raises(driver_root.DriverNotReady, match="nvidia-uvm is not loaded"):
        without(root, "nvidia-uvm", "nvidia-uvm-tools").read()


def test_optional_files_are_skipped_and_required_ones_named(root: Path) -> None:
    (root / "usr/bin/nvidia-smi").unlink()
    (root / "run/nvidia-persistenced/socket").unlink()
    assert all("/lib" in path for path in mounted(root))
    (root / gpunode.LIBRARIES / "libcuda.so.1").unlink()
    with pytest.raises(driver_root.DriverNotReady, match=r"libcuda\.so\.1"):
        opened(root).read()


def test_every_library_of_the_drivers_version_is_given_and_no_other(root: Path) -> None:
    a_library(root, f"libnvidia-ptxjitcompiler.so.{VERSION}", "libnvidia-ptxjitcompiler.so.1")
    a_library(root, f"vdpau/libvdpau_nvidia.so.{VERSION}", "libvdpau_nvidia.so.1")
    a_library(root, f"libnvidia-allocator.so.{VERSION}")
    a_library(root, "libnvidia-egl-gbm.so.1.1.2")
    a_library(root, "libnvidia-nvvm70.so.4")
    previous = set(mounted(root))
    a_library(root, "libnvidia-glcore.so.470.10")
    a_library(root, "libssl.so.3")
    a_library(root, f"evil name.so.{VERSION}")
    a_library(root, f'lib","hooks":[.so.{VERSION}')
    assert set(mounted(root)) == previous
    assert previous >= {
        f"{PLACE}/libnvidia-ptxjitcompiler.so.1",
        f"{PLACE}/vdpau/libvdpau_nvidia.so.1",
        f"{PLACE}/vdpau/libvdpau_nvidia.so.{VERSION}",
        f"{PLACE}/gbm/nvidia-drm_gbm.so",
        f"{PLACE}/libnvidia-egl-gbm.so.1.1.2",
        f"{PLACE}/libnvidia-nvvm70.so.4",
    }


def test_the_files_of_graphics_programs_and_firmware_go_where_they_are_looked_for(
    root: Path, host: Path
) -> None:
    files = {
        "etc/vulkan/icd.d/nvidia_icd.json": "/etc/vulkan/icd.d/nvidia_icd.json",
        "usr/share/glvnd/egl_vendor.d/10_nvidia.json": (
            "/usr/share/glvnd/egl_vendor.d/10_nvidia.json"
        ),
        "usr/share/vulkan/implicit_layer.d/nvidia_layers.json": (
            "/etc/vulkan/implicit_layer.d/nvidia_layers.json"
        ),
        "usr/share/nvidia/nvoptix.bin": "/usr/share/nvidia/nvoptix.bin",
        "etc/OpenCL/vendors/nvidia.icd": "/etc/OpenCL/vendors/nvidia.icd",
        "usr/share/X11/xorg.conf.d/10-nvidia.conf": "/usr/share/X11/xorg.conf.d/10-nvidia.conf",
        "usr/lib/xorg/modules/drivers/nvidia_drv.so": "/usr/lib/xorg/modules/drivers/nvidia_drv.so",
        "usr/sbin/nvidia-imex": "/usr/bin/nvidia-imex",
        f"opt/fw/nvidia/{VERSION}/gsp_ga10x.bin": (f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin"),
    }
    for name in files:
        gpunode.write(root / name, "")
    gpunode.write(root / f"opt/fw/nvidia/{VERSION}/other.bin", "")
    gpunode.write(host / "sys/module/firmware_class/parameters/path", f"{root}/opt/fw\n")
    result = mounted(root)
    assert {file: result.get(file) for file in files.values()} == {
        file: str(root / name) for name, file in files.items()
    }
    assert not any(location.endswith("other.bin") for location in result)


# Covers S-4.
def test_a_container_gets_only_the_client_sockets_of_driver_daemons(
    root: Path,
) -> None:
    """Fabric Manager's folder has the channel to the subnet manager too, and its state."""
    previous = set(mounted(root))
    folder = root / "run/nvidia-fabricmanager"
    for name in ("socket", "fm_sm_ipc.socket"):
        gpunode.a_socket(folder / name)
    gpunode.write(folder / "nv-fabricmanager.pid", "1")
    assert set(mounted(root)) - previous == {"/run/nvidia-fabricmanager/socket"}
    (folder / "socket").unlink()
    gpunode.write(folder / "socket", "no socket")
    assert set(mounted(root)) == previous


def test_mps_is_never_among_what_all_claims_get(root: Path) -> None:
    previous = set(mounted(root))
    (root / "tmp/nvidia-mps").mkdir(parents=True)
    for name in ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server"):
        gpunode.write(root / "usr/bin" / name, "")
    assert set(mounted(root)) == previous


def test_with_a_hook_each_library_is_mounted_once_and_the_hook_makes_its_names(
    root: Path, host: Path
) -> None:
    a_hook(host)
    a_library(root, f"libnvidia-allocator.so.{VERSION}", "libnvidia-allocator.so.1")
    libraries = [path for path in mounted(root) if ".so" in path]
    assert sorted(libraries) == [
        f"{PLACE}/{name}.so.{VERSION}"
        for name in ("libcuda", "libnvidia-allocator", "libnvidia-ml")
    ]
    document = hooks(root)
    assert list(document) == [
        "create-symlinks",
        "enable-cuda-compat",
        "update-ldcache",
        "disable-device-node-modification",
    ]
    assert sorted(document["create-symlinks"][1::2]) == [
        f"../libnvidia-allocator.so.1::{PLACE}/gbm/nvidia-drm_gbm.so",
        f"libcuda.so.1::{PLACE}/libcuda.so",
        f"libcuda.so.{VERSION}::{PLACE}/libcuda.so.1",
        f"libnvidia-allocator.so.{VERSION}::{PLACE}/libnvidia-allocator.so.1",
        f"libnvidia-ml.so.{VERSION}::{PLACE}/libnvidia-ml.so.1",
    ]
    assert set(document["create-symlinks"][::2]) == {"--link"}
    assert document["enable-cuda-compat"] == (f"--host-driver-version={VERSION}",)
    assert document["update-ldcache"] == ("--folder", PLACE)
    assert opened(root).read().environment == (f"NVIDIA_CTK_LIBCUDA_DIR={PLACE}",)


def test_the_hook_is_the_hosts_where_it_is_usually_installed_or_asked_for(
    root: Path, host: Path
) -> None:
    assert opened(root).read().hooks == ()
    a_hook(host, "/usr/local/nvidia/toolkit/nvidia-cdi-hook")
    assert {hook.path for hook in opened(root).read().hooks} == {container_toolkit.PROGRAMS[1]}
    a_hook(host)
    assert {hook.path for hook in opened(root).read().hooks} == {HOOK}
    assert opened(root, "none").read().hooks == ()
    with pytest.raises(driver_root.DriverNotReady, match="/opt/hook"):
        opened(root, "/opt/hook").read()
    a_hook(host, "/opt/hook")
    assert {hook.arguments[0] for hook in opened(root, "/opt/hook").read().hooks} == {"hook"}


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("1.17.8", ["create-symlinks", "enable-cuda-compat", "update-ldcache"]),
        (
            "1.18.0-rc.1",
            [
                "create-symlinks",
                "enable-cuda-compat",
                "update-ldcache",
                "disable-device-node-modification",
            ],
        ),
    ],
)
def test_a_program_is_given_only_the_hooks_that_its_version_has(
    root: Path, host: Path, version: str, names: list[str]
) -> None:
    a_hook(host, says=f"NVIDIA CDI Hook version {version}\ncommit: 1\n")
    assert list(hooks(root)) == names


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        (
            "NVIDIA CDI Hook version 1.17.7\n",
            r"is version 1\.17\.7; expected 1\.17\.8 or newer: CVE",
        ),
        ("NVIDIA CDI Hook version unknown\n", "its version is not known: it printed 'NVIDIA"),
        ("fail: exit 127", "its version is not known: run .* exit 127"),
    ],
)
def test_a_program_with_known_holes_or_of_no_known_version_is_not_used(
    root: Path, host: Path, says: str, problem: str
) -> None:
    without = mounted(root)
    a_hook(host, says=says)
    assert hooks(root) == {}
    assert mounted(root) == without
    with pytest.raises(driver_root.DriverNotReady, match=problem):
        opened(root, HOOK).read()
    a_hook(host, container_toolkit.PROGRAMS[1])
    assert {hook.path for hook in opened(root).read().hooks} == {container_toolkit.PROGRAMS[1]}


def test_a_program_that_was_replaced_is_asked_again_and_else_never(root: Path, host: Path) -> None:
    requested: list[str] = []

    def ask(position: Path, path: str) -> str:
        requested.append(path)
        return toolkits.ask(position, path)

    driver = gpunode.with_control_nodes(root)
    files = driver_files.DriverFiles(driver, host, time=after(root, 60), run_version=ask)
    a_hook(host, says="NVIDIA CDI Hook version 1.17.8")
    assert [len(files.read().hooks) for _ in range(3)] == [3, 3, 3]
    assert requested == [HOOK]
    a_hook(host)
    assert [len(files.read().hooks) for _ in range(3)] == [4, 4, 4]
    assert requested == [HOOK, HOOK]


def test_all_of_it_is_kept_while_nothing_changes(root: Path, host: Path) -> None:
    driver = opened(root)
    first = driver.read()
    assert driver.read() is first
    a_hook(host)
    hooked = driver.read()
    assert hooked.hooks
    assert driver.read() is hooked


def test_a_driver_that_was_replaced_is_seen_at_once(root: Path) -> None:
    driver = opened(root)
    driver.read()
    for name in ("libcuda.so", "libnvidia-ml.so"):
        (root / gpunode.LIBRARIES / f"{name}.1").unlink()
    gpunode.a_driver_root(root, "590.1.2")
    names = {Path(mount.host_path).name for mount in driver.read().mounts}
    assert "libcuda.so.590.1.2" in names
    assert f"libcuda.so.{VERSION}" not in names


@pytest.mark.parametrize(
    "name",
    [
        f"{gpunode.LIBRARIES}/libnvidia-cfg.so.{VERSION}",
        f"{gpunode.LIBRARIES}/vdpau/libvdpau_nvidia.so.{VERSION}",
        "usr/bin/nvidia-debugdump",
        "etc/vulkan/icd.d/nvidia_icd.json",
        f"lib/firmware/nvidia/{VERSION}/gsp_tu10x.bin",
    ],
)
def test_a_file_that_comes_later_is_given_from_then_on(root: Path, name: str) -> None:
    driver = opened(root)
    previous = driver.read()
    gpunode.write(root / name, "")
    assert {str(root / name)} == {m.host_path for m in driver.read().mounts} - {
        m.host_path for m in previous.mounts
    }


def test_a_device_node_with_other_numbers_is_seen_at_once(root: Path) -> None:
    numbers = dict(gpunode.CONTROL)
    driver = driver_root.DriverRoot(root, lambda path: numbers.get(path.name))
    files = driver_files.DriverFiles(driver, root.parent / "host", time=after(root, 60))
    files.read()
    numbers["nvidia-uvm"] = (500, 0)
    assert {node.major for node in files.read().nodes if node.path == "/dev/nvidia-uvm"} == {500}


def test_files_that_just_changed_are_not_cached(root: Path) -> None:
    driver = gpunode.with_control_nodes(root)
    files = driver_files.DriverFiles(driver, root.parent / "host", time=after(root, 1))
    assert files.read() is not files.read()


def test_links_in_a_circle_are_no_files_and_hide_no_others(root: Path) -> None:
    previous = mounted(root)
    for name in (f"libnvidia-x.so.{VERSION}", "libcuda.so.9"):
        (root / gpunode.LIBRARIES / name).symlink_to(name)
    assert mounted(root) == previous


def test_a_driver_of_two_versions_is_not_ready(root: Path) -> None:
    folder = root / gpunode.LIBRARIES
    (folder / "libnvidia-ml.so.1").unlink()
    (folder / f"libnvidia-ml.so.{VERSION}").rename(folder / "libnvidia-ml.so.590.1")
    (folder / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.590.1")
    with pytest.raises(driver_root.DriverNotReady, match=rf"libnvidia-ml.*version {VERSION}"):
        opened(root).read()


def test_a_driver_without_a_version_is_not_ready(root: Path) -> None:
    folder = root / gpunode.LIBRARIES
    for name in ("libcuda.so", "libnvidia-ml.so"):
        (folder / f"{name}.1").unlink()
        (folder / f"{name}.{VERSION}").rename(folder / f"{name}.1")
    with pytest.raises(driver_root.DriverNotReady, match="version"):
        opened(root).read()


def test_a_driver_chosen_by_links_elsewhere_goes_where_it_really_is(root: Path, host: Path) -> None:
    """Debian's way: its alternatives point from the loader's folder to the driver's own."""
    own = root / gpunode.LIBRARIES / "nvidia/current"
    own.mkdir(parents=True)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        link = root / gpunode.LIBRARIES / f"{name}.1"
        link.unlink()
        (link.parent / f"{name}.{VERSION}").rename(own / f"{name}.{VERSION}")
        link.symlink_to(f"/etc/alternatives/{name}.1")
        gpunode.write(root / "etc/alternatives/x", "")
        (root / f"etc/alternatives/{name}.1").symlink_to(
            f"/{gpunode.LIBRARIES}/nvidia/current/{name}.{VERSION}"
        )
    assert f"{PLACE}/libcuda.so.1" in mounted(root)
    a_hook(host)
    assert f"{PLACE}/nvidia/current/libcuda.so.{VERSION}" in mounted(root)
    assert hooks(root)["update-ldcache"] == ("--folder", f"{PLACE}/nvidia/current")


#
def test_libraries_in_a_folder_of_no_loader_go_where_it_looks(root: Path, host: Path) -> None:
    odd = root / "opt/Nvidia"
    odd.mkdir(parents=True)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        link = root / gpunode.LIBRARIES / f"{name}.1"
        link.unlink()
        (link.parent / f"{name}.{VERSION}").rename(odd / f"{name}.{VERSION}")
        link.symlink_to(f"/opt/Nvidia/{name}.{VERSION}")
    location = f"/usr/lib/{os.uname().machine}-linux-gnu"
    assert f"{location}/libcuda.so.1" in mounted(root)
    a_hook(host)
    assert f"{location}/libcuda.so.{VERSION}" in mounted(root)
    assert hooks(root)["update-ldcache"] == ("--folder", location)

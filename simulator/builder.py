"""The directories a driver looks at: a driver root and a host root, laid out like real ones."""

import os
import shutil
import stat
from pathlib import Path

from simulator import capabilities, compiler, layout, machine, pci_files

NVIDIA_MAJOR = 195
CONTROL_MINOR = 255
MODESET_MINOR = 254
UVM_MAJOR = 511
CAPS_MAJOR = 237
"""Both dynamic on a real host; listed in proc/devices."""


_MEMORY_MAJOR = 1
_MEMORY_MINORS = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
"""Of the kernel's own devices (admin-guide/devices.txt), which every /dev has."""


def build(base: Path, of: machine.Machine) -> None:
    """Make both roots of `of` under `base`."""
    at = layout.Layout(base)
    _driver_files(at, of.library_version)
    _system_files(at.driver_root)
    _devices(at.driver_root / "dev")
    at.nvml_socket.parent.mkdir(parents=True, exist_ok=True)
    _proc(at.host_root / "proc")
    for gpu in of.gpus:
        _pci_device(at.host_root / "sys", gpu)
    follow(base, of)


def follow(base: Path, of: machine.Machine) -> None:
    """Bring the files that follow the state in step with it: the boot's id, MIG capabilities.

    Of the host's processes, proc shows those that have a GPU open.
    """
    at = layout.Layout(base)
    _write(at.host_root / "proc/sys/kernel/random/boot_id", f"{of.boot_id}\n")
    _write(
        at.host_root / "proc/driver/nvidia/version",
        f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {of.driver_version}\n",
    )
    if not (at.libraries / f"libnvidia-ml.so.{of.library_version}").exists():
        _driver_files(at, of.library_version)
    _follow_nodes(at, of)
    for gpu in of.gpus:
        _follow_bus(at, gpu, gone=of.board(gpu).gone)
        _information(at.host_root / "proc", gpu, of.minor(gpu))
    _follow_capabilities(at, of)
    _follow_processes(at.host_root / "proc", of)


def _follow_processes(proc: Path, of: machine.Machine) -> None:
    """Links to the processes that are connected; those that were only ordered exist nowhere."""
    boards = of.state.boards.values()
    held = {str(one.pid) for board in boards for one in board.processes if one.held}
    shown = {path.name for path in proc.iterdir() if path.is_symlink()}
    for pid in shown - held:
        (proc / pid).unlink()
    for pid in held - shown:
        _link(proc / pid, f"/proc/{pid}")


def _follow_nodes(at: layout.Layout, of: machine.Machine) -> None:
    """The device nodes: those of the GPUs that are there, by the minors of now."""
    there = [gpu for gpu in of.gpus if not (of.board(gpu).gone or gpu.slot.excluded)]
    wanted = {f"nvidia{of.minor(gpu)}": of.minor(gpu) for gpu in there}
    dev = at.driver_root / "dev"
    for node in dev.glob("nvidia[0-9]*"):
        if node.name not in wanted:
            node.unlink()
    for name, minor in wanted.items():
        if not (dev / name).exists():
            _node(dev / name, NVIDIA_MAJOR, minor)


def _follow_bus(at: layout.Layout, gpu: machine.Gpu, *, gone: bool) -> None:
    """A GPU's entry among the PCI devices."""
    pci, bridge = gpu.slot.pci, gpu.slot.host_bridge
    link = at.host_root / "sys/bus/pci/devices" / pci
    if gone:
        link.unlink(missing_ok=True)
    elif not link.is_symlink():
        link.parent.mkdir(parents=True, exist_ok=True)
        _link(link, f"../../../devices/pci{bridge}/{bridge}:01.0/{pci}")


def _follow_capabilities(at: layout.Layout, of: machine.Machine) -> None:
    present = {capability.path: capability for capability in capabilities.present(of)}
    listed, nodes = at.capabilities, at.capability_nodes
    listed.mkdir(parents=True, exist_ok=True)
    nodes.mkdir(parents=True, exist_ok=True)
    wanted = {f"nvidia-cap{capability.minor}" for capability in present.values()}
    for node in nodes.iterdir():
        if node.name not in wanted:
            node.unlink()
    for path in sorted(listed.rglob("*"), reverse=True):  # what a folder holds comes before it
        name = str(path.relative_to(listed))
        if path.is_dir():
            if not any(known.startswith(f"{name}/") for known in present):
                path.rmdir()
        elif name not in present:
            path.unlink()
    for name, capability in present.items():
        if not (listed / name).exists():
            _capability(listed / name, nodes, capability)


def _capability(path: Path, nodes: Path, capability: capabilities.Capability) -> None:
    """A capability's node and then its file, as readers of the file look for the node."""
    _node(nodes / f"nvidia-cap{capability.minor}", CAPS_MAJOR, capability.minor, capability.mode)
    _write(
        path,
        f"DeviceFileMinor: {capability.minor}\n"
        f"DeviceFileMode: {capability.mode}\n"
        "DeviceFileModify: 1\n",
    )


def _driver_files(at: layout.Layout, version: str) -> None:
    made = compiler.programs()
    libraries = {
        compiler.NVML: compiler.library(int(version.split(".", maxsplit=1)[0])),
        "libcuda.so": made / "libcuda.so",
    }
    binaries = at.driver_root / "usr/bin"
    for folder in (at.libraries, binaries):
        folder.mkdir(parents=True, exist_ok=True)
    for library, source in libraries.items():
        old = {path for path in at.libraries.glob(f"{library}.*") if not path.is_symlink()}
        new = at.libraries / f"{library}.{version}"
        shutil.copy2(source, new)
        _link(at.libraries / f"{library}.1", new.name)
        for path in old - {new}:
            path.unlink()
    _link(at.libraries / "libcuda.so", "libcuda.so.1")
    for program in compiler.BINARIES:
        new = binaries / f"{program}.new"
        shutil.copy2(made / program, new)
        new.replace(binaries / program)  # one that runs cannot be written to


def _system_files(root: Path) -> None:
    """A loader, and the libraries that go with it: the driver's root is a whole system."""
    for source in compiler.system():
        copy = root / source.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy)


def _devices(dev: Path) -> None:
    dev.mkdir(parents=True, exist_ok=True)
    _node(dev / "nvidiactl", NVIDIA_MAJOR, CONTROL_MINOR)
    _node(dev / "nvidia-modeset", NVIDIA_MAJOR, MODESET_MINOR)
    _node(dev / "nvidia-uvm", UVM_MAJOR, 0)
    _node(dev / "nvidia-uvm-tools", UVM_MAJOR, 1)
    for name, minor in _MEMORY_MINORS.items():
        _node(dev / name, _MEMORY_MAJOR, minor)
    (dev / "shm").mkdir(exist_ok=True)


def _node(path: Path, major: int, minor: int, mode: int = 0o666) -> None:
    """A character device; a plain file where making devices is not allowed."""
    path.unlink(missing_ok=True)
    try:
        os.mknod(path, stat.S_IFCHR | mode, os.makedev(major, minor))
    except PermissionError:
        path.touch()
    path.chmod(mode)


def _proc(proc: Path) -> None:
    _write(
        proc / "devices",
        f"Character devices:\n  1 mem\n{NVIDIA_MAJOR} nvidia\n{NVIDIA_MAJOR} nvidiactl\n"
        f"{NVIDIA_MAJOR} nvidia-modeset\n{CAPS_MAJOR} nvidia-caps\n{UVM_MAJOR} nvidia-uvm\n\n"
        "Block devices:\n",
    )
    _write(proc / "driver/nvidia-caps/mig-minors", "\n".join(capabilities.minors()) + "\n")


def _information(proc: Path, gpu: machine.Gpu, minor: int) -> None:
    _write(
        proc / "driver/nvidia/gpus" / gpu.slot.pci / "information",
        f"Model: \t\t {gpu.product.name}\n"
        f"GPU UUID: \t {gpu.uuid}\n"
        "Bus Type: \t PCIe\n"
        f"Bus Location: \t {gpu.slot.pci}\n"
        f"Device Minor: \t {minor}\n",
    )


def _pci_device(sys: Path, gpu: machine.Gpu) -> None:
    """A GPU's folder below /sys/devices; no driver is bound to an excluded one (assumed)."""
    folder = sys / f"devices/pci{gpu.slot.host_bridge}/{gpu.slot.host_bridge}:01.0/{gpu.slot.pci}"
    for name, text in pci_files.texts(gpu).items():
        _write(folder / name, f"{text}\n")
    (folder / "config").write_bytes(pci_files.configuration(gpu))
    (folder / "reset").touch()
    if not gpu.slot.excluded:
        driver = sys / "bus/pci/drivers/nvidia"
        driver.mkdir(parents=True, exist_ok=True)
        _link(folder / "driver", os.path.relpath(driver, folder))


def _write(path: Path, text: str) -> None:
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _link(path: Path, target: str) -> None:
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(path)

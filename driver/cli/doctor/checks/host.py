"""Checks on the node itself: the driver's root, device files, cgroups, CDI."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from driver.cli.doctor.checks import findings

Numbers = tuple[int, int]
_CHAR_FIX = "nvidia-ctk system create-dev-char-symlinks --create-all, at each boot"
_CONTROL = ("nvidiactl", "nvidia-uvm")


@dataclass(frozen=True, slots=True)
class Host:
    """Files and settings below a node's root.

    `driver` is where the driver is, or None, and `searched` what each place lacks. `devices` are
    the driver's device files with their numbers, `links` the names in `/dev/char`. `unified`:
    cgroup v2. `kubelet` and `containerd` are the texts of their configurations, None where there is
    none to be read. `hooks` are the programs that run as root for containers: path, version, and
    why the plugin does not use it ("" where it does).
    """

    name: str
    driver: str | None
    searched: str
    devices: Mapping[str, Numbers]
    links: frozenset[str]
    unified: bool
    cdi_folders: tuple[str, ...]
    kubelet: str | None = None
    containerd: str | None = None
    hooks: tuple[tuple[str, str, str], ...] = ()


def examine(host: Host) -> Iterator[findings.Finding]:
    """All there is to say."""
    for check in (_driver, _devices, _links, _cgroups, _cdi, _hooks):
        yield from check(host)


def _driver(host: Host) -> Iterator[findings.Finding]:
    if host.driver is not None:
        text = f"the driver's libraries are below {host.driver}"
        yield findings.Finding("driver root", findings.State.FINE, text, where=host.name)
        return
    fix = "install the NVIDIA driver, or name where it is: driverRoot in the chart's values"
    text = f"no NVIDIA driver: {host.searched}"
    yield findings.Finding("driver root", findings.State.WRONG, text, fix, host.name)


def _devices(host: Host) -> Iterator[findings.Finding]:
    missing = [device for device in _CONTROL if device not in host.devices]
    if not missing:
        gpus = sum(1 for device in host.devices if re.fullmatch(r"nvidia\d+", device))
        text = f"/dev/nvidiactl, /dev/nvidia-uvm, and {gpus} GPUs"
        yield findings.Finding("device files", findings.State.FINE, text, where=host.name)
        return
    text = f"there is no {' and no '.join(f'/dev/{device}' for device in missing)}"
    fix = "nvidia-modprobe -c 0 -u; is the kernel module loaded (lsmod)?"
    yield findings.Finding("device files", findings.State.WRONG, text, fix, host.name)


def _links(host: Host) -> Iterator[findings.Finding]:
    """With systemd runc looks devices up in /dev/char, and takes away what it does not find."""
    missing = sorted(
        name
        for name, (major, minor) in host.devices.items()
        if f"{major}:{minor}" not in host.links
    )
    if not host.devices:
        return
    if not missing:
        text = f"/dev/char has links to all {len(host.devices)} device files"
        yield findings.Finding("dev char", findings.State.FINE, text, where=host.name)
        return
    text = f"/dev/char lacks links to {', '.join(missing)}"
    if _kubelet_driver(host) == "cgroupfs":
        text += "; with the cgroup driver cgroupfs nothing looks there"
        yield findings.Finding("dev char", findings.State.NOTE, text, where=host.name)
        return
    text += ": running containers lose their GPU at a `systemctl daemon-reload`"
    yield findings.Finding("dev char", findings.State.WRONG, text, _CHAR_FIX, host.name)


def _cgroups(host: Host) -> Iterator[findings.Finding]:
    version = "v2" if host.unified else "v1"
    kubelet, runtime = _kubelet_driver(host), _containerd_driver(host)
    if kubelet and runtime and kubelet != runtime:
        text = f"the kubelet's cgroup driver is {kubelet}, containerd's {runtime}"
        fix = "make both systemd: cgroupDriver of the kubelet, SystemdCgroup of containerd's runc"
        yield findings.Finding("cgroups", findings.State.WRONG, text, fix, host.name)
        return
    message = kubelet or runtime or "not told by the kubelet's configuration"
    text = f"cgroup {version}, driver {message}"
    yield findings.Finding("cgroups", findings.State.FINE, text, where=host.name)


def _cdi(host: Host) -> Iterator[findings.Finding]:
    if host.containerd is not None and re.search(
        r"^\s*enable_cdi\s*=\s*false", host.containerd, re.MULTILINE
    ):
        text = "containerd's configuration has enable_cdi = false: pods start without their GPU"
        fix = "enable_cdi = true, and restart containerd"
        yield findings.Finding("cdi", findings.State.WRONG, text, fix, host.name)
    elif not host.cdi_folders:
        text = "neither /etc/cdi nor /var/run/cdi is there; the plugin makes the second"
        yield findings.Finding("cdi", findings.State.NOTE, text, where=host.name)
    else:
        text = f"specs lie in {' and '.join(host.cdi_folders)}"
        yield findings.Finding("cdi", findings.State.FINE, text, where=host.name)


def _hooks(host: Host) -> Iterator[findings.Finding]:
    used = [f"{path} {version}" for path, version, problem in host.hooks if not problem]
    for path, _, problem in host.hooks:
        if problem:
            text = f"{path} {problem}; it is not used"
            fix = "update the NVIDIA container toolkit, or GPU operator, of this node"
            yield findings.Finding("cdi hook", findings.State.WRONG, text, fix, host.name)
    if used or not host.hooks:
        text = f"{used[0]} is used" if used else "no nvidia-cdi-hook; none is needed"
        yield findings.Finding("cdi hook", findings.State.FINE, text, where=host.name)


def _kubelet_driver(host: Host) -> str:
    result = re.search(r"^cgroupDriver:\s*\"?(\w+)", host.kubelet or "", re.MULTILINE)
    return result[1] if result else ""


def _containerd_driver(host: Host) -> str:
    result = re.search(r"^\s*SystemdCgroup\s*=\s*(true|false)", host.containerd or "", re.MULTILINE)
    if result is None:
        return ""
    return "systemd" if result[1] == "true" else "cgroupfs"

"""The files of a node before Kubernetes: Debian's packages, kind's own files, a few programs.

Debian 12, not 13: systemd 252 runs on control groups of either version, 257 only on v2.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hack.cluster import errors, shell
from hack.image import oci
from hack.kind.nodeimage import upstream

SUITE = "bookworm"
PACKAGES = (
    "bash", "ca-certificates", "conntrack", "e2fsprogs", "ethtool", "iproute2", "iptables", "jq",
    "kmod", "libseccomp2", "mount", "nftables", "pigz", "procps", "runc", "systemd", "util-linux",
)  # fmt: skip
NETWORK = ("conntrack", "ip", "nft", "xtables-nft-multi", "xtables-legacy-multi", "kmod")
"""What kube-proxy and the node's network call; the last are called by other names."""
_CALLED = {
    "iptables": "xtables-nft-multi", "iptables-save": "xtables-nft-multi",
    "iptables-restore": "xtables-nft-multi", "ip6tables": "xtables-nft-multi",
    "ip6tables-save": "xtables-nft-multi", "ip6tables-restore": "xtables-nft-multi",
    "iptables-nft-save": "xtables-nft-multi", "iptables-legacy-save": "xtables-legacy-multi",
    "modprobe": "kmod",
}  # fmt: skip
_EXTENSIONS = "usr/lib/*/xtables/*.so"
_LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/lib/apt/lists", "var/log",
             "var/cache/apt/archives", "var/cache/debconf", "tmp")  # fmt: skip
_UNWANTED_UNITS = (
    "lib/systemd/system/multi-user.target.wants/*",
    "etc/systemd/system/*.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "lib/systemd/system/basic.target.wants/*",
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
)
_ENABLED = ("kubelet.service", "containerd.service", "undo-mount-hacks.service")
_MASKED = ("systemd-binfmt.service",)
_HOOK = "/kind/bin/mount-product-files.sh"
_UNPACKED = "usr/local/bin", "usr/local/sbin", "opt/cni/bin", "kind/bin"


def debian(out: Path, *, lines: Callable[[str], None]) -> None:
    """Write `rootfs.tar` into `out`: Debian's packages as debootstrap lays them out.

    `lines` is given each line that debootstrap prints.
    """
    root = out / "rootfs"
    words = ("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, root)
    follow([str(word) for word in words], lines)
    for name in _LEFT_OUT:
        for path in (root / name).glob("*"):
            _remove(path)
    pack(root, out / "rootfs.tar")
    shutil.rmtree(root)


def follow(
    words: Sequence[str], lines: Callable[[str], None], env: Mapping[str, str] | None = None
) -> None:
    """Run a program and hand on its lines; CommandFailedError with the last ones if it fails."""
    last: list[str] = []
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    ) as process:
        for line in process.stdout or ():
            last = [*last[-20:], line]
            lines(line)
    if process.returncode != 0:
        raise errors.CommandFailedError(tuple(words), process.returncode, "".join(last))


def pack(root: Path, archive: Path) -> None:
    """Tar a root with its owners, by name and of no date."""
    flags = ("--sort=name", "--mtime=@0", "--numeric-owner", "--xattrs")
    shell.run(("tar", "-C", str(root), *flags, "-cf", str(archive), "."))


def unpack(archive: Path, root: Path) -> None:
    """Lay out what `pack` wrote."""
    root.mkdir(parents=True)
    shell.run(("tar", "-C", str(root), "--numeric-owner", "--xattrs", "-xpf", str(archive)))


def furnish(root: Path, source: Path, programs: Mapping[str, Path]) -> None:
    """Make a node's root of Debian's: kind's files, containerd and its like, units that start.

    `source` is kind's module; `programs` are paths in the root with what is to lie there.
    """
    _copy_files(source / upstream.BASE_FILES, root)
    for name, program in programs.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(program, place)
        place.chmod(0o755)
    for pattern in _UNWANTED_UNITS:
        for path in root.glob(pattern):
            _remove(path)
    with (root / "etc/systemd/journald.conf").open("a") as journald:
        journald.write("ReadKMsg=no\n")
    init = root / "sbin/init"
    init.unlink(missing_ok=True)
    init.symlink_to("/usr/lib/systemd/systemd")
    systemctl = ("systemctl", f"--root={root}")
    shell.run((*systemctl, "enable", *_ENABLED))
    shell.run((*systemctl, "mask", *_MASKED))
    (root / "etc/kubernetes/manifests").mkdir(parents=True, exist_ok=True)
    usual = json.loads(shell.run((str(root / "usr/local/bin/ctr"), "oci", "spec")))
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(base_spec(usual)))


def base_spec(usual: Mapping[str, Any]) -> dict[str, Any]:
    """What every container starts from: kind's hook added, and the limits of its caller left out.

    The hook shows containers the product files of the node in place of the machine's.
    """
    hooks = dict(usual.get("hooks") or {})
    hooks["createContainer"] = [*hooks.get("createContainer", ()), {"path": _HOOK}]
    process = {key: value for key, value in usual["process"].items() if key != "rlimits"}
    return {**usual, "hooks": hooks, "process": process}


def network_files(root: Path) -> Iterator[oci.Entry]:
    """The programs of `NETWORK` with all that they are linked to, out of a root of Debian."""
    programs = [_program(root, name) for name in NETWORK]
    extensions = sorted(root.glob(_EXTENSIONS))
    needed = {name for path in (*programs, *extensions) for name in _linked(root, path)}
    for name in sorted(needed):
        yield oci.Entry(name.lstrip("/"), _resolved(root, name))
    for path in programs:
        yield oci.Entry(f"usr/sbin/{path.name}", path.resolve())
    for path in extensions:
        content: str | Path = str(path.readlink()) if path.is_symlink() else path
        yield oci.Entry(str(path.relative_to(root)), content)
    for name, program in _CALLED.items():
        yield oci.Entry(f"usr/sbin/{name}", program)


def _program(root: Path, name: str) -> Path:
    for folder in ("usr/bin", "usr/sbin"):
        path = root / folder / name
        if path.is_file() and not path.is_symlink():
            return path
    raise errors.ClusterError(f"{root}: lacks {name}")


def _linked(root: Path, path: Path) -> list[str]:
    inside = "/" + str(path.relative_to(root))
    answer = shell.run(("chroot", str(root), "ldd", inside), ends=(0, 1))
    words = [word for line in answer.splitlines() for word in line.split()]
    return [word for word in words if word.startswith("/") and not word.endswith(":")]


def _resolved(root: Path, name: str) -> Path:
    """A path of a root followed to its file; links in it begin at the root."""
    path = Path(os.path.normpath(root / name.lstrip("/")))
    real = shell.run(("chroot", str(root), "readlink", "-f", name)).strip()
    return root / real.lstrip("/") if real else path


def _copy_files(files: Path, root: Path) -> None:
    """Copy what Go's module cache holds read only and without modes."""
    for source in sorted(files.rglob("*")):
        name = source.relative_to(files)
        place = root / name
        if source.is_dir():
            place.mkdir(mode=0o755, exist_ok=True)
            continue
        shutil.copyfile(source, place)
        place.chmod(0o755 if str(name.parent) in _UNPACKED else 0o644)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()

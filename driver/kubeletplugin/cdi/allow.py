"""Allow-list of a CDI spec's content. Pure.

Only NVIDIA's device nodes; mounts only from the driver root, of an MPS daemon or of device
metadata; variables of CUDA's MPS, of the toolkit and of ours; hooks of the one configured program,
with our arguments and the driver's file names. Of tenants' input only the names of a claim and its
requests fit, as Kubernetes allows them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

Problem = tuple[str, str, str]
"""(location, problem, expected)."""

HOOK_ENVIRONMENT = ("NVIDIA_CTK_DEBUG=false",)
_NODE = re.compile(r"/dev/nvidia(?:\d{1,3}|ctl|-uvm|-uvm-tools|-modeset|-caps/nvidia-cap\d{1,7})")
_FOLDER = r"(?:/usr)?/lib(?:64)?(?:/[a-z0-9_]+-linux-gnu)?(?:/nvidia(?:/current)?)?(?:/vdpau)?"
_FILE = r"lib[A-Za-z0-9_+-]+\.so(?:\.[0-9]+)*"
_X_FOLDER = (
    r"/usr/(?:lib|lib64|lib/[a-z0-9_]+-linux-gnu|X11R6/lib|X11R6/lib64)(?:/nvidia/current)?"
    r"/(?:nvidia/xorg|(?:xorg/)?modules(?:/updates)?/(?:drivers|extensions))"
)
_X_FILE = r"(?:nvidia_drv\.so|libglxserver_nvidia\.so(?:\.[0-9]+)*)"
_LOADERS = rf"(?:{_FOLDER}|/usr/local/nvidia/lib64(?:/vdpau)?)"
_LIBRARY = rf"(?:{_LOADERS}/(?:gbm/nvidia-drm_gbm\.so|{_FILE})|{_X_FOLDER}/{_X_FILE})"
_SETTING = (
    r"/usr/share/(?:glvnd|egl|nvidia|X11)(?:/[A-Za-z0-9_]+\.d)?/[A-Za-z0-9_-]+\.(?:json|conf|bin)"
    r"|/etc/(?:OpenCL/vendors/nvidia\.icd|vulkan/[a-z_]+\.d/nvidia_[a-z0-9_.]+\.json)"
    r"|/usr/share/X11/xorg\.conf\.d/[a-z0-9-]+\.conf"
    r"|/lib/firmware/nvidia/[0-9]+(?:\.[0-9]+)+/(?:gsp|ucodes)[a-z0-9_]*\.bin"
)
_PROGRAM = r"/usr/bin/nvidia-(?!cuda-mps-)[a-z0-9-]+"
_SOCKET = r"/run/nvidia-(?:persistenced|fabricmanager)/socket"
_PLACE = re.compile(rf"{_LIBRARY}|{_PROGRAM}|{_SOCKET}|{_SETTING}")
_SHARED_PLACES = {"/tmp/nvidia-mps": "ro", "/dev/shm": "rw"}  # noqa: S108 - in containers
"""Paths shared with an MPS daemon, and their access: sockets to connect to, memory to write."""
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"
_CLAIM = rf"(?:resourceclaims/{_NAME}|resourceclaimtemplates/{_LABEL})"
_METADATA = re.compile(
    rf"/var/run/kubernetes\.io/dra-device-attributes/{_CLAIM}/{_LABEL}/{_NAME}-metadata\.json"
)
_ENVIRONMENT = re.compile(
    r"NVIDIA_VISIBLE_DEVICES=void"
    rf"|NVIDIA_CTK_LIBCUDA_DIR={_FOLDER}"
    r"|CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"
    r"|CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=\d{1,2}=\d{1,9}M(?:,\d{1,2}=\d{1,9}M)*"
    r"|CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=\d{1,3}"
    r"|CUDA_MPS_CLIENT_PRIORITY=[01]"
    r"|CUDA_DEVICE_MAX_CONNECTIONS=\d{1,2}"
    r"|RATION_GPU(?:_[0-9A-F]{1,8}){4}_(?:TS|MPS)=memory=\d{1,15},compute=\d{1,3}"
)
_TARGET = rf"(?:\.\./)?{_FILE}"
_HOOKS = re.compile(
    rf"create-symlinks(?:\0--link\0{_TARGET}::{_LIBRARY})+"
    r"|enable-cuda-compat\0--host-driver-version=[0-9]+(?:\.[0-9]+)+"
    rf"|update-ldcache(?:\0--folder\0{_FOLDER})+"
    r"|disable-device-node-modification"
)
"""Arguments after the program's name, joined by NUL, which no argument can hold."""
_NOT_PLAIN = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of this node.

    Mounts and nodes may come from `driver_root` only, nodes from /dev under `host_root` too; the
    files shared with an MPS daemon from `shared_root`, if set; device metadata from
    `metadata_root`; hooks may run `program` only, if set.
    """

    driver_root: str
    shared_root: str = ""
    program: str = ""
    metadata_root: str = ""
    host_root: str = ""

    def check_node(self, path: str, host: str) -> Iterator[Problem]:
        """Yield the problems of a device node."""
        roots = [str(PurePosixPath(root)) for root in (self.driver_root, self.host_root) if root]
        if not _NODE.fullmatch(path):
            yield "deviceNodes.path", f"is {path!r}", "a device of NVIDIA's"
        if host not in {root.rstrip("/") + path for root in roots}:
            expected = f"the same device under {' or '.join(roots)}"
            yield "deviceNodes.hostPath", f"is {host!r}", expected

    def check_mount(self, host: str, target: str, options: Sequence[str]) -> Iterator[Problem]:
        """Yield the problems of a mount."""
        is_shared, is_metadata = target in _SHARED_PLACES, _METADATA.fullmatch(target) is not None
        root = (
            self.shared_root
            if is_shared
            else self.metadata_root
            if is_metadata
            else self.driver_root
        )
        if not root or not _is_under(host, str(PurePosixPath(root))):
            yield "mounts.hostPath", f"is {host!r}", f"a path under {root or 'no root at all'}"
        if not (is_shared or is_metadata or is_driver_path(target)):
            yield "mounts.containerPath", f"is {target!r}", "a place of NVIDIA's files"
        needed = {_SHARED_PLACES.get(target, "ro"), "nosuid", "nodev"}
        missing = (needed | {"noexec"} if is_shared else needed) - set(options)
        if missing:
            yield "mounts.options", f"lacks {sorted(missing)}", "a mount that gives no more"

    def check_hook(
        self, path: str, arguments: Sequence[str], env: Sequence[str]
    ) -> Iterator[Problem]:
        """Yield the problems of a hook."""
        if not self.program or path != self.program:
            yield "hooks.path", f"is {path!r}", self.program or "no hook at all"
        if arguments[0] != PurePosixPath(path).name or not is_known_hook(arguments[1:]):
            yield "hooks.args", f"are {list(arguments)!r}", "a hook that we know"
        if tuple(env) != HOOK_ENVIRONMENT:
            yield "hooks.env", f"is {list(env)!r}", f"{HOOK_ENVIRONMENT}"


def check_variable(text: str) -> Iterator[Problem]:
    """Yield the problems of a variable, `NAME=value`."""
    if not _ENVIRONMENT.fullmatch(text):
        yield "env", f"is {text!r}", "a variable of MPS, of the toolkit or of a share"


def is_driver_path(path: str) -> bool:
    """Return whether a driver file may be mounted at this container path."""
    return _PLACE.fullmatch(path) is not None


def is_known_hook(arguments: Sequence[str]) -> bool:
    """Return whether these are a known hook's name and arguments."""
    return _HOOKS.fullmatch("\0".join(arguments)) is not None


def _is_under(path: str, root: str) -> bool:
    """Return whether a plain absolute path is under the root; never with `..` or `//`."""
    above = "/" if root == "/" else f"{root}/"
    return path.startswith(above) and _NOT_PLAIN.isdisjoint(path[1:].split("/"))

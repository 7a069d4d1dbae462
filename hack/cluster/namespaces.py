"""A node's own view of the machine: its folders at the paths where every real node has them.

The driver's pods mount fixed paths of their host, and here several nodes share one. So a node's
containerd and kubelet run in a mount namespace of their own, which a file in the node's folder
keeps; what they mount in it goes with it.
"""

import os
from collections.abc import Sequence

from hack.cluster import layout, shell

# Shared again, but only inside: containers may ask for mounts that come later (HostToContainer).
_SCRIPT = """\
set -eu
mount --make-rshared /
while [ $# -gt 0 ]; do mkdir -p "$2"; mount --bind "$1" "$2"; shift 2; done
"""


def make(folders: layout.NodeLayout) -> None:
    """Make the node's namespace; one that is there stays."""
    pin = folders.namespace
    if exists(folders):
        return
    pin.parent.mkdir(exist_ok=True)
    # A namespace's file may not lie where mounts propagate from: into the namespace itself.
    shell.run(("mount", "--bind", str(pin.parent), str(pin.parent)))
    shell.run(("mount", "--make-private", str(pin.parent)))
    pin.touch()
    views = [str(path) for view in folders.views() for path in view]
    unshare = ("unshare", f"--mount={pin}", "--propagation=private", "--")
    shell.run((*unshare, "sh", "-c", _SCRIPT, "views", *views))


def exists(folders: layout.NodeLayout) -> bool:
    """Whether the node has one."""
    # Not Path.is_mount: to that only folders can be mounted on.
    return os.path.ismount(folders.namespace)


def inside(folders: layout.NodeLayout, command: Sequence[str]) -> tuple[str, ...]:
    """The command as it is run there; the process is the command's."""
    return ("nsenter", f"--mount={folders.namespace}", "--", *command)

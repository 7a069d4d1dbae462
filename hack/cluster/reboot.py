"""A node's machine goes down without a word and boots again: what only memory held is gone."""

import sys
from collections.abc import Callable

from hack.cluster import (
    cgroups,
    control,
    errors,
    layout,
    mounts,
    namespaces,
    node,
    processes,
    shell,
    state,
    store,
    toolchain,
)


def reboot(where: layout.Layout, name: str, furnish: Callable[[], None] | None = None) -> None:
    """Boot a node anew. Returns when its components were started; the node is Ready later.

    `furnish` is called before they are, on the dark node: to mount what its fstab would.

    Processes and containers die at once, mounts go, /run and the CDI folder are empty, the GPUs are
    as after power-on and the boot id is another. Disks keep what they have.
    """
    with toolchain.lock(where.lock):
        cluster = store.running(where)
        if cluster.node(name) is None:
            names = ", ".join(entry.name for entry in cluster.nodes)
            raise errors.ClusterError(f"no node {name}; expected one of {names}")
        # As a DaemonSet's pods, other drivers that run come back with the node.
        others = tuple(
            component
            for component in node.foreign(where, name)
            if control.condition(where, component, name) in {"running", "frozen"}
        )
        components = (*state.NODE_CORE, *cluster.driver_components(), *others)
        _lose_power(where, name, components)
        if cluster.driver is state.Driver.PODS:
            namespaces.make(where.node(name))
        if furnish is not None:
            furnish()
        for component in components:
            control.start(where, component, name)
            if component == "containerd":
                node.wait_runtime(where, name)


def _lose_power(where: layout.Layout, name: str, components: tuple[str, ...]) -> None:
    folders = where.node(name)
    for component in components:
        if component != "gpu":
            control.kill(where, component, name)
    for component in components:
        if component != "gpu":
            node.end_group(where, f"components/{processes.key(component, name)}")
    node.end_group(where, f"pods/{name}")
    left = mounts.undo(folders.root)
    if left:
        raise errors.ClusterError(f"still mounted: {', '.join(map(str, left))}")
    for folder in (folders.run, folders.cdi):
        node.clear_folder(folder)
        folder.mkdir()
    cgroups.prepare_pods(where.tag, name)
    if "gpu" in components:
        command = (sys.executable, "-m", "simulator", "fault", "reboot", str(folders.gpu))
        shell.run(command, cwd=where.checkout)
        control.kill(where, "gpu", name)

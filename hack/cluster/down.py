"""The end of a cluster: every process, mount, address, table and group it made, nothing else.

Nothing here needs the cluster to be whole. The groups tell the processes, the folder tells the
mounts; a crash, a kill in the middle of `up` and a reboot all leave what is needed.
"""

import contextlib
import dataclasses
import shutil
import signal

from hack.cluster import errors, host, layout, network, node, processes, progress, store, toolchain


def down(where: layout.Layout, steps: progress.Steps, *, any_owner: bool = False) -> None:
    """End this checkout's cluster (or whichever holds the machine, with `any_owner`)."""
    with toolchain.lock(where.lock):
        owner = store.owner(where)
        if owner is None and not where.home.exists():
            _remove_checkout_files(where)
            steps.say("No local cluster is up.")
            return
        if owner is not None and owner != where.checkout and not any_owner:
            raise errors.OwnedElsewhereError(owner)
        with steps.step("End the cluster", 3):
            clear(dataclasses.replace(where, checkout=owner or where.checkout))


def clear(where: layout.Layout) -> None:
    """Undo everything, in an order that can be begun again after a kill.

    Tables and addresses of a named cluster are in its own network: from another one it is refused.
    """
    network.require(where)
    cluster = store.read(where)
    _kill_recorded(where)
    node.end_group(where)
    node.clear_folder(where.home / "n")
    host.remove_tables()
    host.remove_addresses(host.all_addresses())
    if cluster is not None:
        host.restore_sysctls(cluster.sysctls if cluster.boot == processes.boot() else {})
        host.remove_foreign_files(where, store.own_folders(where, cluster))
    _remove_checkout_files(where)
    node.clear_folder(where.home)
    where.marker.unlink(missing_ok=True)


def _kill_recorded(where: layout.Layout) -> None:
    """The groups hold them all; records help where someone moved a process to another group."""
    for path in where.records.glob("*.json"):
        with contextlib.suppress(ValueError):
            record = processes.Record.read(path)
            if record is not None and record.process is not None:
                processes.end(record.process, signal.SIGKILL)


def _remove_checkout_files(where: layout.Layout) -> None:
    """Everything in `.cluster/` but the logs."""
    where.kubeconfig.unlink(missing_ok=True)
    for folder in (where.records, where.nodes, where.programs):
        shutil.rmtree(folder, ignore_errors=True)

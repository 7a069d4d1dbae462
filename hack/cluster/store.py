"""The cluster's state and the machine's marker, on disk."""

import contextlib
import json
from pathlib import Path

import pydantic

from hack.cluster import errors, layout, network, processes, state


def read(where: layout.Layout) -> state.ClusterState | None:
    """The state of this checkout's cluster; none if there is none that can be read."""
    with contextlib.suppress(FileNotFoundError, pydantic.ValidationError):
        return state.ClusterState.model_validate_json(where.state.read_text())
    return None


def write(where: layout.Layout, cluster: state.ClusterState) -> None:
    """Keep the state, whole or not at all."""
    part = where.state.with_suffix(".part")
    part.write_text(cluster.model_dump_json(indent=2) + "\n")
    part.replace(where.state)


def is_up(cluster: state.ClusterState) -> bool:
    """Whether the cluster came up, and in this boot."""
    return cluster.phase is state.Phase.UP and cluster.boot == processes.boot()


def running(where: layout.Layout) -> state.ClusterState:
    """The state of the cluster that is up; NotUp if none is, ClusterError from another network."""
    cluster = read(where)
    if cluster is None or not is_up(cluster):
        raise errors.NotUp(where.checkout)
    network.require(where)
    return cluster


def others(where: layout.Layout) -> tuple[state.ClusterState, ...]:
    """The other clusters that this boot of the machine holds, whole or half."""
    found = []
    for path in sorted(where.base.glob("*/state.json")):
        with contextlib.suppress(FileNotFoundError, pydantic.ValidationError):
            cluster = state.ClusterState.model_validate_json(path.read_text())
            if path != where.state and cluster.boot == processes.boot():
                found.append(cluster)
    return tuple(found)


def own_folders(where: layout.Layout, cluster: state.ClusterState) -> tuple[str, ...]:
    """The folders of the machine that go with a cluster: none while another one is there.

    On such a folder a node of the other may have a mount, in a namespace that nobody else sees;
    the kernel drops it with the folder. Whoever goes last knows of all of them.
    """
    return () if others(where) else cluster.absent


def owner(where: layout.Layout) -> Path | None:
    """The checkout whose cluster has this name on the machine."""
    with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
        return Path(json.loads(where.marker.read_text())["checkout"])
    return None

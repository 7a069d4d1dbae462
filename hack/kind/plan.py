"""What `up` and `down` do, decided from what there is. Pure: facts in, a list of steps out.

A run that was cut short leaves facts from which the next plan goes on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hack.cluster import errors
from hack.kind import config, layout

WORKER, CONTROL_PLANE = "worker", "control-plane"
INOTIFY_INSTANCES = 1024
"""Each node's kubelet, containerd, kube-proxy and journal take some of one user's."""
_GIB = 1 << 30
_BUILD_BYTES, _CREATE_BYTES = 8 * _GIB, 4 * _GIB


class Action(StrEnum):
    """One kind of step."""

    RAISE_INOTIFY = "raise the machine's limit of inotify instances"
    DELETE = "delete what an earlier run left half made"
    CREATE = "create the cluster"
    START = "start the nodes"
    GPUS = "start the simulated GPUs"
    IMAGES = "load the images"
    INSTALL = "install the chart"


@dataclass(frozen=True, slots=True)
class Step:
    """An action, and the nodes it is about (none: the cluster)."""

    action: Action
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node's container.

    `gpus` is the key of the runtime that its GPUs' service has, empty if that does not run;
    `images` are the names of all its images.
    """

    name: str
    role: str
    running: bool
    mounts: Mapping[Path, Path]
    gpus: str = ""
    images: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Facts:
    """What there is.

    `created` if kind once said of this checkout's cluster that it is made; `begun` if a run began
    to make it, and may have been cut.
    """

    root: bool
    host: config.Host
    nodes: tuple[Node, ...]
    created: bool
    begun: bool
    free: Mapping[Path, int]
    inotify_instances: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `up` is to bring about.

    `runtime` is the key of the machines' runtime, `images` the names that nodes must have.
    """

    where: layout.Layout
    workers: tuple[str, ...]
    runtime: str
    images: tuple[str, ...]


def up(wanted: Wanted, facts: Facts) -> list[Step]:
    """The steps to the cluster that is wanted; a ClusterError says why it cannot be."""
    if not facts.root:
        raise errors.ClusterError(NO_ROOT)
    refuse_foreign(wanted.where, facts, wanted.workers)
    return [*_prepare(facts), *_cluster(wanted, facts), Step(Action.INSTALL)]


def _prepare(facts: Facts) -> list[Step]:
    low = facts.inotify_instances < INOTIFY_INSTANCES
    return [Step(Action.RAISE_INOTIFY)] if low else []


def _cluster(wanted: Wanted, facts: Facts) -> list[Step]:
    if not facts.nodes or not facts.created:
        _refuse_full_disk(facts)
        left = (Step(Action.DELETE),) if facts.nodes else ()
        every = Step(Action.IMAGES)
        return [*left, Step(Action.CREATE), Step(Action.GPUS, wanted.workers), every]
    stopped = tuple(node.name for node in facts.nodes if not node.running)
    dark = tuple(
        node.name for node in facts.nodes if node.role == WORKER and node.gpus != wanted.runtime
    )
    lacking = tuple(node.name for node in facts.nodes if not node.images.issuperset(wanted.images))
    steps = {Action.START: stopped, Action.GPUS: dark, Action.IMAGES: lacking}
    return [Step(action, nodes) for action, nodes in steps.items() if nodes]


def refuse_foreign(
    where: layout.Layout, facts: Facts, workers: Sequence[str] | None = None
) -> None:
    """Refuse to touch a cluster of that name that this checkout did not make.

    `workers`, where given, are those that it is to have; one that is only begun may have fewer.
    """
    if not facts.nodes:
        return
    present = {node.name: node for node in facts.nodes if node.role == WORKER}
    if not (facts.created or facts.begun) or (facts.created and not present):
        raise errors.ClusterError(_FOREIGN.format(name=where.name))
    for worker in present.values():
        mounted = worker.mounts.get(layout.MACHINE)
        if mounted is None:
            raise errors.ClusterError(_FOREIGN.format(name=where.name))
        if mounted != where.machine(worker.name):
            other = mounted.parents[2]
            raise errors.ClusterError(
                f"the kind cluster {where.name!r} is of another checkout, {other}: take another "
                f"name (CLUSTER=...), or end it first: make -C {other} kind-down"
            )
    if facts.created and workers is not None and set(present) != set(workers):
        raise errors.ClusterError(
            f"the kind cluster {where.name!r} has the workers {', '.join(sorted(present))}, and "
            f"kind-config.yaml now asks for {', '.join(workers)}: make kind-down first"
        )


NO_ROOT = "it needs root, because simulated machines have device nodes: sudo -E make kind-up"
_FOREIGN = (
    "a kind cluster {name!r} is there that was not made here, without simulated GPUs: take another "
    "name (CLUSTER=...), or delete it: kind delete cluster --name {name}"
)


def _refuse_full_disk(facts: Facts) -> None:
    for place, free in facts.free.items():
        if free < _CREATE_BYTES:
            raise errors.ClusterError(
                f"{place} has {free / _GIB:.1f} GiB free, and a cluster takes "
                f"{_CREATE_BYTES / _GIB:.0f}: free some space, and run it again"
            )


def refuse_full_disk_for_build(free: Mapping[Path, int]) -> None:
    """Refuse to build a node image where it would not fit."""
    for place, size in free.items():
        if size < _BUILD_BYTES:
            raise errors.ClusterError(
                f"{place} has {size / _GIB:.1f} GiB free, and to build a node image takes "
                f"{_BUILD_BYTES / _GIB:.0f}: free some space (or set XDG_CACHE_HOME to another "
                "disk), and run it again"
            )

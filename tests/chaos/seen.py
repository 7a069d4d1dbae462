"""Observations: the API, the nodes' files, their hardware. Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from driver.resources.dra import claims as resource_claims
from driver.resources.dra import slices as resource_slices

Raw = Mapping[str, Any]
_EXCLUSIVE, _SLICE, _SERVE = "compute-exclusive", "time-slice", "mps-serve"
_INTERVALS = {"Default": 0, "Short": 1, "Medium": 2, "Long": 3}


@dataclass(frozen=True, slots=True)
class Unit:
    """Part of a GPU that a claim has: all of it, memory slices of it, or a share of it.

    `memory` is in bytes, `compute` in percent; both are of a share.
    """

    gpu: str
    slices: frozenset[int] = frozenset()
    sharing: str = ""
    memory: int = 0
    compute: int = 0

    @property
    def whole(self) -> bool:
        """Return whether nobody else may have any of the GPU."""
        return not self.slices and not self.sharing


@dataclass(frozen=True, slots=True)
class Held:
    """A claim's record on a node, as far as it says what was prepared.

    `gpus` are all that it touches. `places` are where its MIG instances are, `serves` the GPUs
    whose MPS daemon it wants, `alone` those it made exclusive, `turns` time slices by GPU.
    """

    uid: str
    name: str
    done: bool
    gpus: frozenset[str]
    units: tuple[Unit, ...]
    places: frozenset[tuple[str, int, int]] = frozenset()
    serves: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    turns: Mapping[str, int] = field(default_factory=dict)


def held(record: Raw) -> Held:
    """Return what a record says."""
    devices, steps = record["devices"], record["steps"]
    units = tuple(_unit(device) for device in devices if not device["admin_access"])
    return Held(
        uid=record["claim"]["uid"],
        name=f"{record['claim']['namespace']}/{record['claim']['name']}",
        done=record["state"] == "completed",
        gpus=frozenset(device["gpu"] for device in devices if not device["admin_access"]),
        units=units,
        places=frozenset(
            (unit.gpu, min(unit.slices), len(unit.slices)) for unit in units if unit.slices
        ),
        serves=frozenset(step["gpu"] for step in steps if step["act"] == _SERVE),
        alone=frozenset(step["gpu"] for step in steps if step["act"] == _EXCLUSIVE),
        turns={
            step["gpu"]: _INTERVALS[step["arguments"]["interval"]]
            for step in steps
            if step["act"] == _SLICE
        },
    )


def _unit(device: Raw) -> Unit:
    instance, terms = device["edits"].get("instance"), device.get("terms")
    if instance is not None:
        placement = instance["placement"]
        return Unit(
            device["gpu"],
            frozenset(range(placement["start"], placement["start"] + placement["size"])),
        )
    if terms is not None:
        share = terms["memory_bytes"], terms["compute_percent"]
        return Unit(device["gpu"], frozenset(), terms["sharing"], *share)
    return Unit(device["gpu"])


@dataclass(frozen=True, slots=True)
class Gpu:
    """The hardware now. `instances` are starts and sizes of MIG instances in memory slices."""

    uuid: str
    compute_mode: int = 0
    timeslice: int = 0
    mig: bool = False
    instances: frozenset[tuple[int, int]] = frozenset()
    memory: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A node's own side.

    `specs` are claims with a CDI spec. `wanted` and `running` are GPUs by their MPS daemons, asked
    for and alive; `shm` those with a mount for one. `strays` are files and processes that are
    nobody's. `scarred` are GPUs that were reset under claims that are still there. `registered`:
    the kubelet has taken on the plugin since either was last started.
    """

    name: str
    held: tuple[Held, ...] = ()
    specs: frozenset[str] = frozenset()
    gpus: tuple[Gpu, ...] = ()
    wanted: frozenset[str] = frozenset()
    running: frozenset[str] = frozenset()
    ready: frozenset[str] = frozenset()
    shm: frozenset[str] = frozenset()
    strays: tuple[str, ...] = ()
    scarred: frozenset[str] = frozenset()
    sockets: int = 1
    registered: bool = True


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the load."""

    name: str
    uid: str
    node: str
    phase: str
    leaving: bool


def given_up(pod: Raw) -> bool:
    """Return whether the kubelet never starts the container that it has made (kubernetes#118321).

    The sandbox is gone, and that of a pod that is never restarted is not made again. A person, or
    a Job's deadline, has to delete the pod.
    """
    status = pod["status"]
    waiting = any(
        entry.get("containerID") and "waiting" in entry.get("state", {})
        for entry in status.get("containerStatuses", ())
    )
    gone = any(
        entry.get("reason") == "PodSandboxNotReady" for entry in status.get("conditions", ())
    )
    return pod["spec"]["restartPolicy"] == "Never" and waiting and gone


@dataclass(frozen=True, slots=True)
class World:
    """All of it, at one moment.

    `conditions` are components by `name` or `name.node`, each `running` or what else it is.
    `lease_age_s` is how long ago the leader was seen to renew. `nodes_ready` are Ready in the API.
    """

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...] = ()
    claims: tuple[resource_claims.Claim, ...] = ()
    slices: tuple[resource_slices.Slice, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)
    lease_age_s: float = 0.0
    nodes_ready: frozenset[str] = frozenset()

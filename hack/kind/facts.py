"""The machine and Docker as they are now, read for the plan."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hack.cluster import errors
from hack.kind import config, docker, layout, machines, plan, runtime

CLUSTER_LABEL = "io.x-k8s.kind.cluster"
ROLE_LABEL = "io.x-k8s.kind.role"
_V2 = Path("/sys/fs/cgroup/cgroup.controllers")
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")


def host() -> config.Host:
    """What of the machine decides about a cluster's settings."""
    absent = runtime.missing(Path("/proc/self/status").read_text())
    return config.Host(legacy_cgroups=not _V2.exists(), oom_scores_fixed=runtime.RESOURCE in absent)


def read(daemon: docker.Docker, where: layout.Layout, cache: layout.Cache) -> plan.Facts:
    """Everything that a plan is made from."""
    nodes = tuple(_node(daemon, raw) for raw in containers(daemon, where.name))
    return plan.Facts(
        root=os.geteuid() == 0,
        host=host(),
        nodes=nodes,
        created=where.created.is_file(),
        begun=where.begun.is_file(),
        free=_free(daemon, cache),
        inotify_instances=int(_INOTIFY.read_text()),
    )


def containers(daemon: docker.Docker, name: str) -> list[Mapping[str, Any]]:
    """The node containers of a cluster of that name, whoever made it."""
    names = daemon.containers(f"label={CLUSTER_LABEL}={name}")
    return daemon.inspect("container", *sorted(names))


def _node(daemon: docker.Docker, raw: Mapping[str, Any]) -> plan.Node:
    name = str(raw["Name"]).lstrip("/")
    running = bool(raw["State"]["Running"])
    role = str(raw["Config"]["Labels"].get(ROLE_LABEL, ""))
    return plan.Node(
        name=name,
        role=role,
        running=running,
        mounts={Path(mount["Destination"]): Path(mount["Source"]) for mount in raw["Mounts"]},
        gpus=machines.installed_key(daemon, name) if running and role == plan.WORKER else "",
        images=_images(daemon, name) if running else frozenset(),
    )


def _images(daemon: docker.Docker, node: str) -> frozenset[str]:
    """The names of a node's images; none while its containerd does not answer."""
    try:
        text = daemon.inside(node, "ctr", "--namespace=k8s.io", "images", "list", "--quiet")
    except errors.CommandFailedError:
        return frozenset()
    return frozenset(text.split())


def _free(daemon: docker.Docker, cache: layout.Cache) -> dict[Path, int]:
    """Free bytes of the disks that are written to."""
    root = json.loads(daemon.run("info", "--format={{json .DockerRootDir}}"))
    places = (Path(root), cache.root)
    return {place: shutil.disk_usage(place).free for place in places if place.exists()}

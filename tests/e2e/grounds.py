"""A cluster for end-to-end tests. There are two: the local one, and kind's where GROUND=kind.

Both answer the same calls (`hack.cluster.api.Cluster`); what kind cannot do it refuses in words.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hack.cluster import api
from hack.kind import api as kind_api
from hack.kind import docker as docker_
from hack.kind import layout, record

ROOT = Path(__file__).parents[2]
NAME = os.environ.get("CLUSTER", "ration")
IS_KIND = os.environ.get("GROUND", "local") == "kind"


def load() -> api.Cluster:
    """The cluster that is up; a ClusterError if none is."""
    if IS_KIND:
        return kind_api.Cluster.load(ROOT, NAME)
    return api.Cluster.load(ROOT)


def docker() -> docker_.Docker:
    """The Docker daemon that has kind's cluster."""
    retained = record.read(layout.Layout(ROOT, NAME))
    return docker_.Docker(retained.host if retained else "")


def up(nodes: int, driver: Sequence[str] = ()) -> api.Cluster:
    """Bring the cluster up; `driver` are the local one's arguments, and so is the number of nodes.

    kind's is as kind-config.yaml has it, with the driver as its chart's pods.
    """
    if IS_KIND:
        daemon = ("--daemon",) if os.environ.get("DAEMON") else ()
        run("hack.kind", "up", *daemon)
    else:
        run("hack.cluster", "up", "--nodes", str(nodes), "--controllers", "2", *driver)
    return load()


def down() -> None:
    """End it."""
    run("hack.kind" if IS_KIND else "hack.cluster", "down")


def run(module: str, *arguments: str) -> None:
    """Run a command of the checkout."""
    subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, check=True)

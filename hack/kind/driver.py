"""The driver on a kind cluster: its image in the nodes, its chart."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.chart import helm
from hack.cluster import chart, configs, images, shell
from hack.image import build, oci
from hack.kind import docker, layout

_LOAD_S = 600
IMAGE = "ration.local/driver:kind"
"""The driver's image in its archive: the cache keeps the last few of a name."""
WORKERS_ONLY = (
    r"--set-string=kubeletPlugin.nodeSelector.ration\.dev/allocator=controller",
    r"--set-string=mps.nodeSelector.ration\.dev/allocator=controller",
)
"""The control plane has no GPUs: node parts go where kind-config.yaml puts the label."""


@dataclass(frozen=True, slots=True)
class Archives:
    """The driver's image and the one that examples and tests run, as archives."""

    driver: Path
    workload: Path

    @property
    def digest(self) -> str:
        """The driver's manifest, by which pods name the image: another one after each change."""
        return oci.digest_of(self.driver)

    @property
    def reference(self) -> str:
        """How pods name the driver's image."""
        return f"{repository()}@{self.digest}"

    def names(self) -> tuple[str, ...]:
        """The names that each node must know."""
        return (self.reference, configs.DRIVER_IMAGE, IMAGE, configs.WORKLOAD_IMAGE)


def repository(name: str = IMAGE) -> str:
    """An image's name without its tag, if it has one; a registry's port is none."""
    head, colon, tail = name.rpartition(":")
    return head if colon and "/" not in tail else name


def ensure(checkout: Path) -> Archives:
    """Make the archives, unless the cache has them."""
    return Archives(build.ensure(IMAGE, checkout), images.ensure()[1])


def load(
    daemon: docker.Docker, kind: Path, where: layout.Layout, made: Archives, nodes: Sequence[str]
) -> None:
    """Have nodes know the images, the driver's by its digest too."""
    for archive in (made.driver, made.workload):
        load_archive(daemon, kind, where, archive, nodes)
    for node in nodes:
        for name in (configs.DRIVER_IMAGE, made.reference):
            tag(daemon, node, IMAGE, name)


def tag(daemon: docker.Docker, node: str, name: str, other: str) -> None:
    """Give an image of a node another name."""
    words = ("ctr", "--namespace=k8s.io", "images", "tag", "--force")
    daemon.inside(node, *words, name, other)


def load_archive(
    daemon: docker.Docker, kind: Path, where: layout.Layout, archive: Path, nodes: Sequence[str]
) -> None:
    """Have nodes know the image of an archive, by kind's own command."""
    words = (str(kind), "load", "image-archive", str(archive), f"--name={where.name}")
    chosen = (f"--nodes={','.join(nodes)}",) if nodes else ()
    shell.run((*words, *chosen), env=daemon.environment(), timeout=_LOAD_S)


def install(where: layout.Layout, *flags: str, of: Path = helm.CHART) -> None:
    """Install or upgrade the release by a chart, and wait until its pods are ready.

    `flags` are helm's. Raises CommandFailedError with helm's words.
    """
    wanted = (f"--namespace={helm.NAMESPACE}", "--create-namespace", f"--values={chart.VALUES}")
    words = ("upgrade", "--install", helm.RELEASE, str(of), *wanted, *WORKERS_ONLY)
    run_helm(where, *words, *chart.WAITING, *flags)


def run_helm(where: layout.Layout, *words: str) -> str:
    """What helm printed, of this cluster. Raises CommandFailedError with its words."""
    environment = {**os.environ, "KUBECONFIG": str(where.kubeconfig)}
    return shell.run((str(helm.program()), *words), env=environment, timeout=_LOAD_S)

"""Releases that replace each other under pods that work on."""

import itertools
import json
from collections.abc import Mapping

from hack.chart import helm
from hack.cluster import api
from tests.e2e import playground, release, standing

OURS = (f"--namespace={helm.NAMESPACE}",)
SUPERVISORS = ("-l", "app.kubernetes.io/component=mps")


def at_work(
    field: playground.Playground, name: str, expected: Mapping[str, str] | None = None
) -> list[str]:
    """Pods that work until they are deleted: one of each mode; `expected`: node by mode."""
    halves = itertools.cycle(field.cluster.nodes())
    nodes = expected or dict(zip(release.MODES, halves, strict=False))
    for mode, node in nodes.items():
        location = {"nodeSelector": playground.on(node)}
        pod = release.a_pod(f"{name}-{mode}", template=mode, command=standing.WORK, **location)
        field.create(pod)
    for mode in nodes:
        field.running(f"{name}-{mode}")
    return [f"{name}-{mode}" for mode in nodes]


def revision() -> str:
    """The release's newest."""
    helm_says = release.helm_says("history", helm.RELEASE, *OURS, "--output=json")
    return str(json.loads(helm_says)[-1]["revision"])


def replace(cluster: api.Cluster, *which: str) -> None:
    """Delete supervisors' pods, and wait for the next ones."""
    cluster.kubectl("delete", "pods", *OURS, *which)
    path = "{.items[*].status.conditions[?(@.type=='Ready')].status}"
    query = ("get", "pods", *OURS, *SUPERVISORS, f"--output=jsonpath={path}")

    def ready() -> bool:
        return cluster.kubectl(*query).split() == ["True"] * len(cluster.nodes())

    playground.until(ready, 60, "every node has a supervisor")

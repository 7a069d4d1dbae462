"""Deployments of claims that a node refuses, and the events of their eviction."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from driver.kube import gvr
from tests.e2e import playground

Raw = dict[str, Any]


@contextlib.contextmanager
def without(library: str, root: Path) -> Iterator[None]:
    """A driver whose library is away for a while, as during an upgrade."""
    moved = [(one, one.with_name(f"away-{one.name}")) for one in root.glob(f"usr/lib/*/{library}*")]
    assert moved
    for one, away in moved:
        one.rename(away)
    try:
        yield
    finally:
        for one, away in moved:
            away.rename(one)


def apply(field: playground.Playground, *objects: Raw) -> None:
    """Apply as users do.

    The server cannot patch the status of objects written with other spaces.
    """
    documents = yaml.safe_dump_all(objects)
    field.cluster.kubectl("apply", "-n", field.namespace, "-f", "-", input=documents)


def a_deployment(template: str, node: str) -> Raw:
    """One replica of a pod whose claim is made of a template."""
    pod = playground.a_pod("unused", template=template, nodeSelector=playground.on(node))
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    }


def evictions(field: playground.Playground) -> list[str]:
    """Return what was told on pods that were evicted, one a pod."""
    found = field.kube.list(gvr.EVENTS, namespace=field.namespace).items
    told = {
        one["regarding"]["uid"]: str(one["note"])
        for one in found
        if one["reason"] == "PodEvicted" and one["regarding"]["kind"] == "Pod"
    }
    return list(told.values())

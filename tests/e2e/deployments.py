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
    moved = [
        (path, path.with_name(f"away-{path.name}")) for path in root.glob(f"usr/lib/*/{library}*")
    ]
    assert moved
    for item, away in moved:
        item.rename(away)
    try:
        yield
    finally:
        for item, away in moved:
            away.rename(item)


def apply(field: playground.Playground, *objects: Raw) -> None:
    """Apply as users do, with other spaces than the server writes."""
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
    items = field.kube.list(gvr.EVENTS, namespace=field.namespace).items
    document = {
        item["regarding"]["uid"]: str(item["note"])
        for item in items
        if item["reason"] == "PodEvicted" and item["regarding"]["kind"] == "Pod"
    }
    return list(document.values())

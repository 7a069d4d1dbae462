"""The quickstart on a fake fleet: two nodes of 8 H100 with every face, and its own pods."""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from driver.resources.publish import slice_builder
from hack.chart import helm
from tests.fakes import simulated_pool
from tests.fakes.deciding import World
from tests.support.builders import objects

_EXAMPLE = Path(__file__).parents[2] / "examples/quickstart/quickstart.yaml"
TOO_BIG, EITHER = "too-big", "either"
NODES = ("node-0", "node-1")
Raw = dict[str, Any]


@functools.cache
def _asks() -> dict[str, Raw]:
    """The claim of each pod of the example: `spec.devices`, by the pod's name, in order."""
    documents = [*yaml.safe_load_all(_EXAMPLE.read_text())]
    templates = {
        document["metadata"]["name"]: document["spec"]["spec"]["devices"]
        for document in documents
        if document["kind"] == "ResourceClaimTemplate"
    }
    return {
        document["metadata"]["name"]: templates[
            document["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]
        ]
        for document in documents
        if document["kind"] == "Pod"
    }


def pod_names() -> tuple[str, ...]:
    """The example's pods, in order; `too-big` is the last."""
    return tuple(_asks())


def _slices(node: str) -> Iterable[Raw]:
    pool = simulated_pool.of_machine(node, "controller")
    owner = slice_builder.Owner(simulated_pool.node_name(node), objects.uid_of(node))
    for number, entry in enumerate(slice_builder.render(pool, owner, 2)):
        document = dict(entry)
        document["metadata"] = {"name": f"{node}-{number}", "resourceVersion": "2"}
        yield document


def world(**more: Any) -> World:
    """A decider over the two nodes, and the chart's DeviceClasses."""
    created = World(0, 0, **more)
    for entry in helm.usual("DeviceClass"):
        meta = {**entry["metadata"], "resourceVersion": "2"}
        created.stores.classes.apply({**entry, "metadata": meta})
    for node in NODES:
        created.put_node(node)
        for entry in _slices(node):
            created.stores.slices.apply(entry)
    return created


def a_pod(like: str, name: str = "", **spec: Any) -> list[Raw]:
    """A pod that asks what one of the example asks, with its claim `NAME-gpu`."""
    name = name or like
    claim = objects.a_claim(f"{name}-gpu")
    claim["spec"]["devices"] = _asks()[like]
    pod = _pod(name, spec)
    # After the example's own, which came in order.
    second = pod_names().index(name) if name in _asks() else len(_asks())
    pod["metadata"]["creationTimestamp"] = f"2026-11-21T09:00:{second:02}Z"
    return [claim, pod]


def whole(name: str, gpus: int = 1, **spec: Any) -> list[Raw]:
    """A pod that asks whole GPUs."""
    claim = objects.a_claim(f"{name}-gpu", objects.a_request("gpu", gpus))
    return [claim, _pod(name, spec)]


def _pod(name: str, spec: Raw) -> Raw:
    """It asks no CPU, as the example's do."""
    return objects.a_pod(name, f"{name}-gpu", **{"containers": [{"name": "main"}], **spec})


def arrive(created: World, names: Iterable[str]) -> None:
    """Pods of the example come one after the other; who has devices is bound, and runs."""
    for name in names:
        created.add(*a_pod(name))
        created.settle()
        node = created.node_of(f"{name}-gpu")
        if node is not None:
            start = created.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            created.change_pod(name, node=node, phase="Running", startTime=start)
            created.settle()

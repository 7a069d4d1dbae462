"""Kinds of pods that wait: the decider's own answer names the true cause, and the nearest fit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from driver import names
from driver.cli.explain import text as explain_text
from driver.controller.web import source as web_source
from driver.reasons import Reason
from driver.scheduling.reports import model
from driver.scheduling.reports.documents import explanation
from tests.fakes import deciding
from tests.support.builders import objects, scheduler_objects

Raw = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A pod that waits: what makes it so, the reason, and words of the message."""

    make: Callable[[deciding.World], None]
    reason: Reason
    says: str
    nearest: str = ""
    gpus: int = 2


def asks(world: deciding.World, *requests: Raw, **pod: Any) -> None:
    world.add(objects.a_claim("claim", *requests), objects.a_pod("pod", **pod))


def taken(world: deciding.World) -> None:
    world.add(objects.a_claim("first", objects.a_request("gpu", 2)), objects.a_pod("one", "first"))
    world.settle()
    asks(world, objects.a_request("gpu", 1))


def of_no_class(world: deciding.World) -> None:
    asks(world, objects.a_request("gpu", 1, deviceClassName="gold.example.com"))


def tainted(world: deciding.World) -> None:
    xid = {"key": names.TAINT_XID, "value": "79", "effect": "NoSchedule"}
    sick = [
        objects.a_device(f"gpu-{index}", taints=[objects.ALLOCATOR_TAINT, xid])
        for index in range(2)
    ]
    world.stores.slices.apply(newer(objects.a_slice("node-0", sick)))
    asks(world, objects.a_request("gpu", 1))


def cordoned(world: deciding.World) -> None:
    cordon = {"key": names.CORDONED_TAINT, "effect": "NoSchedule"}
    devices = [
        objects.a_device(f"gpu-{index}", taints=[objects.ALLOCATOR_TAINT, cordon])
        for index in range(2)
    ]
    world.stores.slices.apply(newer(objects.a_slice("node-0", devices)))
    asks(world, objects.a_request("gpu", 1))


def node_cordoned(world: deciding.World) -> None:
    world.cordon("node-0")
    asks(world, objects.a_request("gpu", 1))


def newer(entry: Raw) -> Raw:
    return {**entry, "metadata": {**entry["metadata"], "resourceVersion": "1000"}}


def beside_another_drivers(world: deciding.World) -> None:
    world.stores.classes.apply(
        objects.a_class("nic.example.com", 'device.driver == "nic.example.com"')
    )
    nic = objects.a_slice("node-0", [objects.a_device("nic-0", taints=[])], "nic.example.com")
    world.stores.slices.apply(nic)
    asks(
        world,
        objects.a_request("gpu", 1),
        objects.a_request("nic", 1, deviceClassName="nic.example.com"),
    )


def beyond_its_queue(world: deciding.World) -> None:
    world.add(
        scheduler_objects.a_queue("team", members=[{"namespace": "default"}], limit={"gpus": "1"})
    )
    asks(world, objects.a_request("gpu", 2))


def an_incomplete_gang(world: deciding.World) -> None:
    world.add(*scheduler_objects.a_gang(2)[:2])
    world.settle(3.0)
    world.settle(3.0)


KINDS = {
    "more than is free": Kind(taken, Reason.NO_FIT, "2 DeviceInUse", "Needs 1 GPU"),
    "more than any node has": Kind(
        lambda world: asks(world, objects.a_request("gpu", 9)),
        Reason.NO_FIT,
        "2 of 9 devices fit",
        "No node here has 9 GPUs",
    ),
    "a class that is not there": Kind(
        of_no_class, Reason.DEVICE_CLASS_NOT_FOUND, "gold.example.com"
    ),
    "GPUs that are ill": Kind(tainted, Reason.NO_FIT, "2 DeviceTainted"),
    "GPUs that are cordoned": Kind(cordoned, Reason.NO_FIT, "2 DeviceCordoned"),
    "a node that is cordoned": Kind(node_cordoned, Reason.NO_FIT, "NodeCordoned"),
    "another node's labels": Kind(
        lambda world: asks(world, objects.a_request("gpu", 1), nodeSelector={"zone": "b"}),
        Reason.NO_FIT,
        "NodeMismatch",
    ),
    "more CPU than the node has": Kind(
        lambda world: asks(
            world,
            objects.a_request("gpu", 1),
            containers=[{"name": "main", "resources": {"requests": {"cpu": "64"}}}],
        ),
        Reason.NO_FIT,
        "NodeFull",
    ),
    "a selector that nothing matches": Kind(
        lambda world: asks(
            world,
            objects.a_request("gpu", 1, 'device.attributes["gpu.ration.dev"].uuid == "GPU-x"'),
        ),
        Reason.NO_FIT,
        "2 SelectorMismatch",
    ),
    "a selector that does not compile": Kind(
        lambda world: asks(world, objects.a_request("gpu", 1, "device.nothing ==")),
        Reason.SELECTOR_INVALID,
        "claim",
    ),
    "another driver's devices in one claim": Kind(
        beside_another_drivers, Reason.FOREIGN_DEVICES, "kube-scheduler allocates the devices of"
    ),
    "a queue that has its limit": Kind(beyond_its_queue, Reason.QUEUE_LIMIT_EXCEEDED, "team"),
    "a gang that is not complete": Kind(an_incomplete_gang, Reason.GANG_PENDING, "1 more of its 2"),
    "another's scheduling gate": Kind(
        lambda world: asks(
            world, objects.a_request("gpu", 1), schedulingGates=[{"name": "example.com/wait"}]
        ),
        Reason.SCHEDULING_GATED,
        "example.com/wait",
    ),
    "a claim that is not there": Kind(
        lambda world: world.add(objects.a_pod("pod", "nowhere")), Reason.CLAIM_NOT_FOUND, "nowhere"
    ),
}


def explained(kind: Kind) -> tuple[model.Pod, str]:
    """The pod as it is reported, and as `ration explain pod` prints it."""
    world = deciding.World(kind.gpus)
    kind.make(world)
    world.settle()
    while world.saying.write_next():
        continue
    world.settle()
    minded = web_source.SourceInputs(
        lambda: None,
        tuple,
        explanation.explain_by(world.decider.explain_queries.last_explanation),
        tuple,
    )
    reports = web_source.ReportSource(world.stores, names.DRIVER, minded, world.clock).read()
    (pod,) = (item for item in reports.waiting().items if item.name != "one")
    whole = reports.pod(pod.key)
    assert whole is not None
    (text,) = explain_text.explain_pod(reports, pod.key).text.parts
    assert isinstance(text, str)
    return whole, text


@pytest.mark.parametrize("name", KINDS)
def test_a_pod_that_waits_is_told_the_true_cause_and_what_to_do(name: str) -> None:
    kind = KINDS[name]
    pod, text = explained(kind)
    assert pod.reason == kind.reason
    assert kind.says in " ".join(text.split())
    assert pod.advice
    assert "What to do: " in text


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.nearest])
def test_a_pod_that_lacks_but_room_is_told_the_nearest_fit(name: str) -> None:
    pod, text = explained(KINDS[name])
    assert pod.explanation is not None
    assert pod.explanation.nearest is not None
    assert KINDS[name].nearest in pod.explanation.nearest.summary
    assert f"Nearest fit: {KINDS[name].nearest}" in text

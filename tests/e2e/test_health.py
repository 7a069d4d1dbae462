"""A GPU fails and recovers: slices, events, condition and pod status follow, nothing restarts."""

from collections.abc import Iterator
from typing import Any

import pytest

from driver import names
from driver.devices import faces
from driver.kube import gvr
from simulator import control
from tests.e2e import playground

NODE = "e2e-a"
WITHIN_S = 10.0
WHOLE = "4294967295"
Calls = list[tuple[str, ...]]
UNHEALTHY: dict[str, tuple[Calls, set[str]]] = {
    "lost": ([("lose",)], {"ration.dev/gpu-lost"}),
    "xid 79": (
        [("xid", "79", WHOLE, WHOLE), ("recovery", "NODE_REBOOT")],
        {"ration.dev/xid", "ration.dev/recovery"},
    ),
    "xid 48 with a row to remap": (
        [("remap", "1", "0"), ("xid", "48", WHOLE, WHOLE), ("recovery", "GPU_RESET")],
        {"ration.dev/xid", "ration.dev/row-remap", "ration.dev/recovery"},
    ),
    "row remap pending": ([("remap", "0", "0")], {"ration.dev/row-remap"}),
}


class Patient:
    """One GPU of a node, held by a pod, and how the cluster sees it."""

    def __init__(self, field: playground.Playground) -> None:
        self.field = field
        self.node = NODE
        field.create(playground.a_claim("held"))
        field.create(playground.a_pod("held", claims=("held",), nodeSelector=playground.on(NODE)))
        field.running("held")
        (self.uuid,) = field.uuids("held")
        device = field.device_of("held")
        assert device is not None
        self.device = device[1]
        self.pid = field.cluster.pid("plugin", NODE)

    def suffer(self, call: str, *arguments: str) -> None:
        base = self.field.cluster.node_dir(self.node) / "gpu"
        control.send(base, call, self.uuid, *arguments)

    def taints(self) -> dict[str, set[str]]:
        """The taints of ill health, by device, of the whole node."""
        result: dict[str, set[str]] = {}
        for item in self.field.kube.list(gvr.RESOURCE_SLICES).items:
            if item["spec"]["nodeName"] != self.node:
                continue
            for device in item["spec"].get("devices", ()):
                keys = {taint["key"] for taint in device.get("taints", ())} - names.OWN_TAINTS
                if keys:
                    result[device["name"]] = keys
        return result

    def condition(self) -> Any:
        node = self.field.kube.get(gvr.NODES, self.node)
        conditions = node["status"]["conditions"]
        return next(
            condition for condition in conditions if condition["type"] == names.NODE_CONDITION
        )

    def seen_by_kubelet(self) -> list[str]:
        statuses = self.field.pod("held")["status"].get("containerStatuses", ())
        return [
            resource["health"]
            for status in statuses
            for entry in status.get("allocatedResourcesStatus", ())
            for resource in entry["resources"]
        ]

    def node_events(self) -> list[str]:
        items = self.field.kube.list(gvr.EVENTS).items
        return [
            f"{item['reason']}: {item.get('note', '')}"
            for item in items
            if item["regarding"].get("kind") == "Node" and item["regarding"]["name"] == self.node
        ]

    def clear(self) -> None:
        """Have the failures of all GPUs of the node forgotten; the annotation is new each time."""
        question = f"all,{self.field.namespace}"
        annotation = f"{names.CLEAR_QUARANTINE}={question}"
        self.field.cluster.kubectl("annotate", "--overwrite", "node", self.node, annotation)
        file = self.field.cluster.node_dir(self.node) / "state" / "quarantine.json"
        playground.until(
            lambda: file.exists() and question in file.read_text(), 20, "the plugin has read it"
        )


@pytest.fixture
def patient(field: playground.Playground) -> Iterator[Patient]:
    created = Patient(field)
    yield created
    created.suffer("restore")
    playground.until(lambda: not created.taints(), WITHIN_S, "every GPU is well again")
    created.clear()


@pytest.mark.parametrize("case", UNHEALTHY)
def test_a_gpu_that_fails_is_tainted_and_told_and_cleared_without_a_restart(
    patient: Patient, case: str
) -> None:
    calls, keys = UNHEALTHY[case]
    for call, *arguments in calls:
        patient.suffer(call, *arguments)
    playground.until(lambda: keys in patient.taints().values(), WITHIN_S, f"taints {keys}")
    sick = patient.taints()
    assert {faces.gpu_name(name) for name in sick} == {patient.device}
    assert all(texts == keys for texts in sick.values())
    playground.until(lambda: patient.condition()["status"] == "False", WITHIN_S, "the condition")
    assert patient.device in patient.condition()["message"]
    messages = patient.field.told("held", "GpuUnhealthy", WITHIN_S)
    assert any(patient.uuid in text for text in messages)
    assert any(patient.uuid in text for text in patient.node_events())
    playground.until(lambda: patient.seen_by_kubelet() == ["Unhealthy"], WITHIN_S, "the kubelet")

    patient.suffer("restore")
    playground.until(lambda: not patient.taints(), WITHIN_S, "no taint")
    playground.until(lambda: patient.condition()["status"] == "True", WITHIN_S, "the condition")
    playground.until(lambda: patient.seen_by_kubelet() == ["Healthy"], WITHIN_S, "the kubelet")
    assert patient.field.told("held", "GpuRecovered", WITHIN_S)
    assert patient.field.cluster.pid("plugin", NODE) == patient.pid


@pytest.mark.parametrize(
    ("code", "reason"), [("63", "GpuNotice"), ("94", "GpuNotice"), ("13", "GpuApplicationError")]
)
def test_an_xid_that_leaves_the_gpu_fit_is_told_and_changes_no_scheduling(
    patient: Patient, code: str, reason: str
) -> None:
    patient.suffer("xid", code, WHOLE, WHOLE)
    messages = patient.field.told("held", reason, WITHIN_S)
    assert any(f"Xid {code}" in text for text in messages)
    assert not patient.taints()
    assert patient.condition()["status"] == "True"


def test_a_gpu_that_fails_three_times_is_kept_out_until_the_node_is_annotated(
    patient: Patient,
) -> None:
    lost, texts = {names.TAINT_LOST}, {names.TAINT_QUARANTINE}
    for _ in range(3):
        patient.suffer("lose")
        playground.until(lambda: lost in patient.taints().values(), WITHIN_S, "it is tainted")
        patient.suffer("restore")
        playground.until(
            lambda: not any(lost & taint for taint in patient.taints().values()),
            WITHIN_S,
            "it is back",
        )
    assert all(taint == texts for taint in patient.taints().values())
    assert {faces.gpu_name(name) for name in patient.taints()} == {patient.device}
    playground.until(lambda: patient.seen_by_kubelet() == ["Healthy"], WITHIN_S, "the kubelet")
    assert patient.field.told("held", "GpuQuarantined", WITHIN_S)
    playground.until(lambda: patient.condition()["status"] == "False", WITHIN_S, "the condition")
    patient.clear()
    playground.until(lambda: not patient.taints(), WITHIN_S, "no taint")
    assert patient.field.told("held", "GpuQuarantineCleared", WITHIN_S)

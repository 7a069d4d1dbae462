from typing import Any

import pytest

from driver import ids
from driver.controller.nodes import unconverted_pods
from driver.kube.events import recorder
from driver.resources.core import pods
from tests.fakes import clock
from tests.support.builders import objects

KEPT = {"ration.dev/convert": "false"}
WORDS = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: none."


def a_pod(message: str = WORDS, resource: str = "nvidia.com/gpu", **spec: Any) -> pods.Pod:
    container = {"name": "main", "resources": {"requests": {resource: "1", "cpu": "1"}}}
    return objects.pod(
        "web", status=objects.refused(message), containers=[container], resourceClaims=[], **spec
    )


def test_a_pod_that_waits_for_a_device_plugin_is_told_of_the_label() -> None:
    unmet_requests = unconverted_pods.unmet_requests(a_pod())
    assert unmet_requests == ("nvidia.com/gpu=1",)
    message = unconverted_pods.message(unmet_requests)
    assert message.startswith("asks nvidia.com/gpu=1, which no node has left")
    assert "ration.dev/convert=false" in message


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("0/2 nodes are available: 2 Insufficient cpu."),
        a_pod("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.shared."),
        a_pod(resource="nvidia.com/hostdev"),
        a_pod(nodeName="node-a"),
        objects.pod("web", resourceClaims=[]),
    ],
)
def test_a_pod_that_waits_for_something_else_is_not(pod: pods.Pod) -> None:
    assert unconverted_pods.unmet_requests(pod) == ()


class Told:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def event(
        self,
        regarding: recorder.ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: recorder.ObjectRef | None = None,
    ) -> None:
        assert warning
        assert related is None
        assert message
        self.lines.append((regarding.name, reason))


def test_each_pod_is_told_once_as_long_as_it_is_there() -> None:
    reported, present = Told(), {ids.Key("default/web"): a_pod()}
    looking = unconverted_pods.UnconvertedPodReporter(
        lambda: present, lambda _: KEPT, reported, clock.FakeClock()
    )
    looking.report()
    looking.report()
    assert reported.lines == [("web", "NotConverted")]
    del present[ids.Key("default/web")]
    looking.report()
    present[ids.Key("default/web")] = a_pod()
    looking.report()
    assert len(reported.lines) == 2


@pytest.mark.parametrize("labels", [{}, {"ration.dev/convert": "true"}])
def test_a_namespace_that_is_not_kept_out_is_asked_about_once_a_look(
    labels: dict[str, str],
) -> None:
    reported, requested = Told(), list[str]()

    def read(namespace: str) -> dict[str, str]:
        requested.append(namespace)
        return labels

    present = {ids.Key("default/web"): a_pod(), ids.Key("default/other"): a_pod()}
    looking = unconverted_pods.UnconvertedPodReporter(
        lambda: present, read, reported, clock.FakeClock()
    )
    looking.report()
    assert requested == ["default"]
    assert reported.lines == []

"""Tests that containers the kubelet will never start differ from those it is about to start."""

from typing import Any

import pytest

from tests.chaos import seen

MADE = {"name": "main", "containerID": "containerd://59f5727c", "state": {"waiting": {}}}


def a_pod(container: dict[str, Any], reason: str, policy: str = "Never") -> dict[str, Any]:
    ready = {"type": "PodReadyToStartContainers", "status": "False", "reason": reason}
    status = {"phase": "Pending", "conditions": [ready], "containerStatuses": [container]}
    return {"spec": {"restartPolicy": policy}, "status": status}


def test_a_container_that_was_made_in_a_sandbox_that_is_gone_is_given_up() -> None:
    assert seen.given_up(a_pod(MADE, "PodSandboxNotReady"))


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(MADE, "PodSandboxNotReady", "Always"),
        a_pod(MADE, ""),
        a_pod({"name": "main", "state": {"waiting": {}}}, "PodSandboxNotReady"),
        a_pod({**MADE, "state": {"terminated": {"exitCode": 137}}}, "PodSandboxNotReady"),
        a_pod({**MADE, "state": {"running": {}}}, "PodSandboxNotReady"),
        {"spec": {"restartPolicy": "Never"}, "status": {"phase": "Pending"}},
    ],
)
def test_a_pod_that_may_still_start_or_has_ended_is_not(pod: dict[str, Any]) -> None:
    assert not seen.given_up(pod)

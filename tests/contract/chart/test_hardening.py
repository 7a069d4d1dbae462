"""Tests of the privileges of pods: each has its reason, and all others are refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.chart import rendered

pytestmark = rendered.BUILDS_HELM
RENDERS = {
    "by default": [],
    "with everything": [f"--values={rendered.EVERYTHING}"],
}
PRIVILEGED = {
    ("kubeletplugin", "plugin"): "makes device nodes known, MIG instances, mounts of MPS daemons",
    ("mps", "supervisor"): "starts daemons under the driver's root, mounts their /dev/shm",
    ("clearing", "clear"): "removes at uninstalling what the plugin's containers made as root",
}
HOST_PIDS = {
    "kubeletplugin": "what runs on a GPU is known by the host's process ids",
    "mps": "daemons know their clients by the host's process ids",
}
ORDINARY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
SELECTOR = "app.kubernetes.io/component"
Spec = dict[str, Any]


@pytest.fixture(params=RENDERS)
def objects(request: pytest.FixtureRequest) -> list[rendered.Object]:
    return rendered.objects(*RENDERS[request.param])


def pods(results: list[rendered.Object]) -> Iterator[tuple[str, Spec]]:
    """Every pod by its component, hooks and the test of `helm test` too."""
    for result in results:
        if result["kind"] == "Pod":
            yield result["metadata"]["labels"].get(SELECTOR, "test"), result["spec"]
        elif result["kind"] in {"Deployment", "DaemonSet", "Job", "CronJob", "StatefulSet"}:
            template = result["spec"]["template"]
            yield template["metadata"]["labels"][SELECTOR], template["spec"]


def containers(spec: Spec) -> Iterator[Spec]:
    yield from (*spec.get("initContainers", ()), *spec["containers"])


def test_a_container_is_ordinary_or_privileged_with_a_reason(
    objects: list[rendered.Object],
) -> None:
    privileged = set()
    for component, spec in pods(objects):
        for container in containers(spec):
            allowed = container["securityContext"]
            if allowed.get("privileged"):
                privileged.add((component, container["name"]))
                assert allowed == {"privileged": True, "readOnlyRootFilesystem": True}
            else:
                assert allowed == ORDINARY, (component, container["name"])
    assert privileged == set(PRIVILEGED)


def test_unprivileged_containers_run_as_non_root_under_seccomp(
    objects: list[rendered.Object],
) -> None:
    special = {component for component, _ in PRIVILEGED}
    for component, spec in pods(objects):
        if component not in special:
            allowed = spec["securityContext"]
            assert allowed["runAsNonRoot"] is True, component
            assert allowed["runAsUser"] > 0
            assert allowed["seccompProfile"] == {"type": "RuntimeDefault"}


def test_the_hosts_processes_are_seen_with_a_reason_and_its_network_never(
    objects: list[rendered.Object],
) -> None:
    assert {component for component, spec in pods(objects) if spec.get("hostPID")} == set(HOST_PIDS)
    for component, spec in pods(objects):
        assert not {"hostNetwork", "hostIPC"} & set(spec), component
        for container in containers(spec):
            assert not any(port.get("hostPort") for port in container.get("ports", ()))


def test_only_the_privileged_have_folders_of_the_host(objects: list[rendered.Object]) -> None:
    special = {component for component, _ in PRIVILEGED}
    with_host = {
        component
        for component, spec in pods(objects)
        if any("hostPath" in entry for entry in spec.get("volumes", ()))
    }
    assert with_host == special


def test_every_component_has_a_policy_of_the_network_that_lets_in_what_is_said() -> None:
    flags = rendered.setting(
        "networkPolicy.enabled=true", "controller.web.enabled=true", "controller.web.exposed=true"
    )
    objects = rendered.objects(*flags)
    served = {
        component for component, spec in pods(objects) if any(map(is_served, containers(spec)))
    }
    let_in = {}
    for obj in objects:
        if obj["kind"] == "NetworkPolicy":
            match_labels = obj["spec"]["podSelector"]["matchLabels"]
            assert set(match_labels) > {SELECTOR}, "a policy is of this release's pods only"
            assert obj["spec"]["policyTypes"] == ["Ingress"]
            ports = [port["port"] for rule in obj["spec"]["ingress"] for port in rule["ports"]]
            let_in[match_labels[SELECTOR]] = sorted(ports)
    assert set(let_in) == served
    assert let_in == {
        "admission": ["metrics", "webhook"],
        "controller": ["metrics", "page"],
        "kubeletplugin": ["metrics"],
        "mps": ["metrics"],
    }


def is_served(container: Spec) -> bool:
    return bool(container.get("ports"))

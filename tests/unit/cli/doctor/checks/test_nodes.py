from typing import Any

import pytest

from driver import names
from driver.cli.doctor import checks
from driver.cli.doctor.checks import findings
from driver.resources import gpu_nodes
from tests.fakes import doctored, strangers
from tests.support.builders import objects

State = findings.State


def wrong(**other: Any) -> dict[str, findings.Finding]:
    """Return what is wrong with node-a, by check."""
    run = checks.run(doctored.healthy(**other))
    return {
        finding.check: finding
        for finding in run
        if finding.state is State.WRONG and finding.where == "node-a"
    }


def test_a_node_that_publishes_says_how_much_and_for_whom() -> None:
    run = checks.run(doctored.healthy())
    document = {finding.check: finding.message for finding in run if finding.where == "node-a"}
    assert document == {
        "devices": "1 device, generation 1",
        "allocator": "controller allocates",
        "cdi": "containerd://2.4.2 has CDI on",
    }


def test_a_node_without_any_sign_of_a_gpu_is_left_out() -> None:
    empty = objects.a_slice("node-a", [])
    finding = doctored.found("nodes", slices=(empty,))
    assert finding.message == "no node shows a GPU"


@pytest.mark.parametrize("label", gpu_nodes.LABELS)
def test_a_node_that_is_said_to_have_gpus_and_publishes_none_is_wrong(label: str) -> None:
    key, _, value = label.partition("=")
    nodes = (doctored.a_node(labels={key: value or "nvidia-l4"}),)
    finding = wrong(nodes=nodes, slices=())["devices"]
    assert finding.message == "nothing is published"
    assert finding.fix == "kubectl describe node node-a: its events say why"
    finding = wrong(nodes=nodes, slices=(), pods=())["devices"]
    assert "kubeletPlugin.nodeSelector" in finding.fix
    finding = wrong(nodes=nodes, slices=(objects.a_slice("node-a", []),))["devices"]
    assert finding.message == "no device is published (generation 1)"


def test_a_node_that_the_chart_leaves_out_for_its_labels_is_told_the_label() -> None:
    nodes = (doctored.a_node(labels={"ration.dev/allocator": "controller"}),)
    finding = wrong(nodes=nodes, slices=(), pods=())["devices"]
    assert finding.fix.endswith("kubectl label node node-a nvidia.com/gpu.present=true")


def test_a_node_that_lost_its_label_is_named_by_its_condition() -> None:
    node = doctored.a_node()
    node["status"]["conditions"].append({"type": names.NODE_CONDITION, "status": "True"})
    finding = wrong(nodes=(node,), slices=(), pods=())["devices"]
    assert finding.fix.endswith("kubectl label node node-a nvidia.com/gpu.present=true")


def test_the_node_that_was_asked_about_is_told_of_whatever_it_has() -> None:
    assert "devices" in wrong(slices=(), node="node-a")
    finding = doctored.found("node", node="node-z")
    assert (finding.state, finding.where) == (State.WRONG, "node-z")


def test_a_pool_that_lacks_a_slice_is_wrong() -> None:
    part = objects.a_slice("node-a", [doctored.a_device()], resourceSliceCount=2)
    assert wrong(slices=(part,))["devices"].message.startswith("1 of 2 slices of generation 1")


def test_slices_of_an_older_generation_do_not_count() -> None:
    old = objects.a_slice("node-a", [doctored.a_device()], part=7)
    new = objects.a_slice("node-a", [doctored.a_device()], generation=2)
    assert wrong(slices=(old, new)) == {}


def test_another_driver_of_the_name_is_wrong() -> None:
    theirs = strangers.a_slice(names.DRIVER, "node-a", "theirs")
    finding = wrong(slices=(theirs,))["driver name"]
    assert finding.message == "another driver publishes under the same name: theirs"
    assert finding.fix.endswith("kubectl delete resourceslices theirs")


def test_a_device_plugin_alone_is_wrong_and_beside_ours_worth_knowing() -> None:
    nodes = (doctored.a_node(resources={"nvidia.com/gpu": "8"}),)
    finding = wrong(nodes=nodes, slices=())["device plugin"]
    assert finding.message == "a device plugin serves nvidia.com/gpu: 8: Ration publishes nothing"
    assert "nvidia.com/gpu.deploy.device-plugin=false" in finding.fix
    assert doctored.found("device plugin", nodes=nodes).state is State.NOTE


def test_a_mig_manager_at_work_is_wrong_and_one_that_may_be_worth_knowing() -> None:
    labels = {"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "pending"}
    assert "mig manager" in wrong(nodes=(doctored.a_node(labels=labels),))
    labels["nvidia.com/mig.config.state"] = "success"
    finding = doctored.found("mig manager", nodes=(doctored.a_node(labels=labels),))
    assert finding.state is State.NOTE
    assert "nvidia.com/mig.config=all-1g.10gb" in finding.message


def test_devices_kept_back_for_their_mig_mode_are_told_with_who_may_keep_it() -> None:
    device = doctored.a_device("gpu-0-mig", "controller", names.MIG_MODE_TAINT)
    slices = (objects.a_slice("node-a", [doctored.a_device(), device]),)
    finding = doctored.found("mig mode", slices=slices)
    assert (finding.state, finding.where) == (State.NOTE, "node-a")
    assert finding.message.startswith("1 device kept back: another NVML client holds a GPU")
    assert finding.fix.startswith("end what reads the GPUs of this node for good")
    labels = {"nvidia.com/gpu.deploy.dcgm-exporter": "true"}
    nodes = (doctored.a_node(labels=labels),)
    assert doctored.found("mig mode", slices=slices, nodes=nodes).fix.startswith(
        "kubectl label node node-a nvidia.com/gpu.deploy.dcgm-exporter=false --overwrite"
    )


@pytest.mark.parametrize(
    ("label", "taints", "state", "words"),
    [
        ("controller", (), State.FINE, "controller allocates"),
        ("me", (), State.WRONG, "label ration.dev/allocator=me names no allocator"),
        ("scheduler", (), State.WRONG, "the label asks for scheduler, the devices are for contr"),
        ("scheduler", (names.HANDOVER_TAINT,), State.NOTE, "a handover is in progress"),
    ],
)
def test_the_label_and_what_is_published_agree(
    label: str, taints: tuple[str, ...], state: findings.State, words: str
) -> None:
    nodes = (doctored.a_node(labels={names.ALLOCATOR_LABEL: label}),)
    device = doctored.a_device("gpu-0", "controller", *taints)
    finding = doctored.found(
        "allocator", nodes=nodes, slices=(objects.a_slice("node-a", [device]),)
    )
    assert finding.state is state
    assert finding.message.startswith(words)


def test_gpus_that_are_not_healthy_are_told_in_the_nodes_own_words() -> None:
    node = doctored.a_node()
    condition = {"type": names.NODE_CONDITION, "status": "False", "message": "gpu-0: lost"}
    node["status"]["conditions"].append(condition)
    assert wrong(nodes=(node,))["health"].message == "gpu-0: lost"


@pytest.mark.parametrize(
    ("runtime", "state"),
    [
        ("containerd://1.6.33", State.WRONG),
        ("containerd://1.7.2", State.NOTE),
        ("containerd://2.0.0-rc.1", State.FINE),
        ("cri-o://1.22.5", State.WRONG),
        ("cri-o://1.36.1", State.FINE),
    ],
)
def test_the_runtime_must_know_cdi(runtime: str, state: findings.State) -> None:
    node = doctored.a_node()
    node["status"]["nodeInfo"]["containerRuntimeVersion"] = runtime
    assert doctored.found("cdi", nodes=(node,)).state is state


def test_an_unknown_runtime_is_not_judged() -> None:
    node = doctored.a_node()
    node["status"]["nodeInfo"]["containerRuntimeVersion"] = "docker://20"
    assert "cdi" not in doctored.states(nodes=(node,))

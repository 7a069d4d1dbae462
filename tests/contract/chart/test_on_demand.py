"""Nodes on demand: what the chart installs for it, and what its policies let the controller do."""

import copy
import functools
from typing import Any

import pytest
import yaml

from driver import names
from driver.api import node_shapes
from driver.controller.config import ControllerConfig
from driver.resources.core import pods
from driver.scheduling.provisioning import node_template, placeholder
from tests.contract.chart import judging, rendered
from tests.contract.chart.rendered_workloads import EVERYTHING, container, workload
from tests.support.builders import objects

pytestmark = rendered.BUILDS_HELM
ON = "controller.nodes.enabled=true"
NAMESPACE = "ration-system"
CONTROLLER = f"system:serviceaccount:{NAMESPACE}:ration-controller"
IMAGE = str(ControllerConfig.model_fields["placeholder_image"].default)
SEEN = "ration-controller-node-shapes-seen"
LEASE = {"spec": {"holderIdentity": "controller-0_x7", "leaseTransitions": 3}}
LEADER = "ration-controller/controller-0_x7/3"
Raw = dict[str, Any]


@functools.cache
def installed(*values: str) -> list[rendered.Object]:
    return rendered.objects(*rendered.setting(ON, *values))


def told(policy: str, request: judging.Request, *values: str) -> list[str]:
    """Return what a policy of the chart says against a request of the controller's."""
    result = rendered.one(installed(*values), "ValidatingAdmissionPolicy", f"ration-{policy}")
    return judging.refusals(result, request)


# What is installed.


def expected(*flags: str) -> tuple[ControllerConfig, node_shapes.NodeShapes]:
    """The controller's settings, and the document that it is given."""
    results = rendered.objects(*flags)
    controller_config = ControllerConfig.read(container(results, "controller")["args"])
    spec = workload(results, "controller")["spec"]["template"]["spec"]
    (volume,) = [volume for volume in spec["volumes"] if volume["name"] == "node-shapes"]
    (mount,) = [
        volume_mount
        for volume_mount in container(results, "controller")["volumeMounts"]
        if volume_mount["name"] == "node-shapes"
    ]
    held = rendered.one(results, "ConfigMap", volume["configMap"]["name"])["data"]
    assert controller_config.node_shapes is not None
    assert str(controller_config.node_shapes.parent) == mount["mountPath"]
    text = held[controller_config.node_shapes.name]
    return controller_config, node_shapes.read(
        yaml.safe_load(text), controller_config.node_shapes.name
    )


def test_no_node_is_requested_by_default() -> None:
    controller_config = ControllerConfig.read(container(rendered.objects(), "controller")["args"])
    assert controller_config.node_shapes is None
    assert "PriorityClass" not in rendered.kinds(rendered.objects())


def test_switched_on_the_controller_has_its_own_defaults() -> None:
    controller_config, document = expected(*rendered.setting(ON))
    usual = ControllerConfig.read([])
    assert controller_config.placeholder_image == usual.placeholder_image
    assert controller_config.observed_shapes_configmap == usual.observed_shapes_configmap == SEEN
    assert controller_config.interruption_taints == usual.interruption_taints
    assert document == node_shapes.NodeShapes()


def test_the_controller_reads_the_shapes_of_the_values() -> None:
    controller_config, document = expected(EVERYTHING)
    assert controller_config.placeholder_image == "registry.example.com/pause:3"
    assert controller_config.observed_shapes_configmap == "gpus-controller-node-shapes-seen"
    assert controller_config.interruption_taints == ("example.com/spot",)
    assert (document.ttl, document.maxInFlight) == ("30m", 4)
    (node_shape,) = document.shapes
    assert (node_shape.name, node_shape.gpus, node_shape.allocatable["cpu"], node_shape.cost) == (
        "h100-8",
        8,
        "190",
        12.5,
    )
    assert node_shape.taints == (node_shapes.Taint(key="nvidia.com/gpu", effect="NoSchedule"),)


def test_no_taint_announces_anything_where_there_are_to_be_none() -> None:
    controller_config, _ = expected(
        f"--set={ON}", "--set-json=controller.nodes.interruptionTaints=[]"
    )
    assert controller_config.interruption_taints == ()


def test_changed_shapes_replace_the_controllers_pods() -> None:
    def sums(most: int) -> str:
        metadata = workload(installed(f"controller.nodes.maxInFlight={most}"), "controller")[
            "spec"
        ]["template"]["metadata"]
        return str(metadata["annotations"]["checksum/node-shapes"])

    assert sums(1) != sums(8)


def test_placeholders_give_way_to_all_and_take_nobodys_place() -> None:
    entry = rendered.one(installed(), "PriorityClass", names.PLACEHOLDER_PRIORITY)
    # Cluster Autoscaler brings no node for pods below -10 (--expendable-pods-priority-cutoff).
    assert (entry["value"], entry["preemptionPolicy"], entry["globalDefault"]) == (
        -10,
        "Never",
        False,
    )


# What the policies let the controller do.


def a_placeholder() -> Raw:
    node_shape = node_shapes.NodeShape(
        name="h100-8",
        labels={"node.kubernetes.io/instance-type": "p5.48xlarge"},
        taints=(node_shapes.Taint(key="nvidia.com/gpu", effect="NoSchedule"),),
        gpus=8,
    )
    guest = pods.parse(objects.a_pod("train-0", nodeSelector={"zone": "a"}))
    kind = node_template.from_document(node_shape, names.DRIVER)
    answer = placeholder.NodeRequest(kind, ("pod/default/train-0",), 0, (guest,))
    copied = copy.deepcopy(placeholder.render(answer, NAMESPACE, IMAGE))
    # As admission leaves it before policies are asked.
    copied["spec"] |= {
        "serviceAccountName": "default",
        "priority": -10,
        "preemptionPolicy": "Never",
    }
    return copied


def makes(pod: Raw, namespace: str = NAMESPACE, **more: Any) -> judging.Request:
    return judging.Request(CONTROLLER, "CREATE", pod, namespace=namespace, **more)


def test_the_controller_makes_and_deletes_what_asks_for_nodes() -> None:
    pod = a_placeholder()
    assert told("placeholders", makes(pod)) == []
    gone = judging.Request(CONTROLLER, "DELETE", None, pod, NAMESPACE)
    assert told("placeholders", gone) == []


def test_other_users_create_pods_as_their_rights_allow() -> None:
    theirs = judging.Request("somebody", "CREATE", objects.a_pod(), namespace=NAMESPACE)
    assert told("placeholders", theirs) == []
    assert told("fencemade", theirs) == []


def test_the_controller_deletes_no_other_pod() -> None:
    gone = judging.Request(CONTROLLER, "DELETE", None, objects.a_pod(), NAMESPACE)
    assert told("placeholders", gone) == [
        "the controller makes and deletes no pods but those that ask for a node"
    ]


def test_elsewhere_it_makes_none() -> None:
    assert told("placeholders", makes(a_placeholder(), "default"))


SECRET = {"secretRef": {"name": "s"}}
PROBE = {"exec": {"command": ["sh"]}}
WRONG: tuple[tuple[str, Any], ...] = (
    ("metadata.labels", {}),
    ("metadata.ownerReferences", [{"kind": "Node", "name": "n"}]),
    ("spec.priorityClassName", "system-node-critical"),
    ("spec.automountServiceAccountToken", True),
    ("spec.serviceAccountName", "ration-kubeletplugin"),
    ("spec.nodeName", "node-a"),
    ("spec.resourceClaims", [{"name": "gpu", "resourceClaimName": "gpu"}]),
    ("spec.volumes", [{"name": "v", "hostPath": {"path": "/"}}]),
    ("spec.hostNetwork", True),
    ("spec.hostPID", True),
    ("spec.hostIPC", True),
    ("spec.securityContext", {"runAsUser": 0}),
    ("spec.initContainers", [{"name": "i", "image": IMAGE}]),
    ("spec.containers.0.image", "busybox"),
    ("spec.containers.0.command", ["sh"]),
    ("spec.containers.0.args", ["-c"]),
    ("spec.containers.0.env", [{"name": "A", "value": "b"}]),
    ("spec.containers.0.envFrom", [SECRET]),
    ("spec.containers.0.ports", [{"hostPort": 80}]),
    ("spec.containers.0.volumeMounts", [{"name": "v", "mountPath": "/v"}]),
    ("spec.containers.0.volumeDevices", [{"name": "v", "devicePath": "/v"}]),
    ("spec.containers.0.lifecycle", {"postStart": PROBE}),
    ("spec.containers.0.livenessProbe", PROBE),
    ("spec.containers.0.readinessProbe", PROBE),
    ("spec.containers.0.startupProbe", PROBE),
    ("spec.containers.0.securityContext", {"privileged": True, "allowPrivilegeEscalation": False}),
    ("spec.containers.0.securityContext", {}),
    (
        "spec.containers.0.securityContext",
        {"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_ADMIN"]}},
    ),
)


@pytest.mark.parametrize(("path", "value"), WRONG, ids=[path for path, _ in WRONG])
def test_a_pod_that_could_do_something_is_refused(path: str, value: Any) -> None:
    pod = a_placeholder()
    position: Any = pod
    *parents, last = path.split(".")
    for step in parents:
        position = position[int(step)] if step.isdigit() else position.setdefault(step, {})
    position[last] = value
    assert len(told("placeholders", makes(pod))) == 1


def test_a_pod_of_two_containers_is_refused() -> None:
    pod = a_placeholder()
    pod["spec"]["containers"] *= 2
    assert told("placeholders", makes(pod))


def test_only_who_holds_the_lease_makes_what_is_made() -> None:
    maps = {"metadata": {"name": SEEN}}
    for entry in (a_placeholder(), maps):
        for manager, refused in ((LEADER, 0), ("ration-controller/other/2", 1), ("", 1)):
            request = makes(entry, manager=manager, params=LEASE)
            assert len(told("fencemade", request)) == refused


def test_without_a_lease_everybody_else_goes_on_making_pods() -> None:
    """A policy whose parameter is absent refuses even whom its conditions leave out."""
    binding = rendered.one(installed(), "ValidatingAdmissionPolicyBinding", "ration-fencemade")
    assert binding["spec"]["paramRef"]["parameterNotFoundAction"] == "Allow"
    policy = rendered.one(installed(), "ValidatingAdmissionPolicy", "ration-fencemade")
    selector = policy["spec"]["matchConstraints"]["namespaceSelector"]
    assert selector == {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_the_controller_writes_one_config_map(operation: str) -> None:
    def writes(name: str, namespace: str) -> list[str]:
        obj = {"metadata": {"name": name}}
        request = judging.Request(CONTROLLER, operation, obj, obj, namespace)
        return told("seenshapes", request)

    assert writes(SEEN, NAMESPACE) == []
    assert writes("ration-controller-node-shapes", NAMESPACE)
    assert writes(SEEN, "default")


def changes(after: Raw, previous: Raw | None = None, subresource: str = "") -> judging.Request:
    """A Node gets these labels and annotations, having had those."""
    node = objects.a_node()
    old = {**node, "metadata": {**node["metadata"], **(previous or {})}}
    new = {**node, "metadata": {**old["metadata"], **after}}
    return judging.Request(CONTROLLER, "UPDATE", new, old, subresource=subresource)


HOSTNAME = {"kubernetes.io/hostname": "node-a"}
COMPLETE = HOSTNAME | {names.POOL_COMPLETE: "true"}
KEPT = {
    names.PROVISIONED_FOR: "pod/a/b 2026-11-21T09:00:00Z",
    names.KARPENTER_KEEP: "true",
    names.AUTOSCALER_KEEP: "true",
}


def test_the_controller_puts_its_marks_on_nodes_and_takes_them_off() -> None:
    marked = {"labels": COMPLETE, "annotations": KEPT}
    assert told("nodes", changes(marked)) == []
    bare = {"labels": HOSTNAME, "annotations": {}}
    former = {"labels": COMPLETE, "annotations": {names.FORMER_PROVISIONED_FOR: "pod/a/b"}}
    assert told("nodes", changes(marked, former)) == []
    assert told("nodes", changes(bare, marked)) == []
    assert told("nodes", changes(marked, subresource="status"))


@pytest.mark.parametrize(
    "after",
    [
        {"labels": HOSTNAME | {"team": "a"}},
        {"labels": HOSTNAME | {names.ALLOCATOR_LABEL: "scheduler"}},
        {"labels": {}},
        {"annotations": {"karpenter.sh/other": "true"}},
        {"annotations": {names.CORDON: "all"}},
        {"finalizers": ["a/b"]},
    ],
)
def test_the_controller_writes_no_other_label_or_annotation_of_a_node(after: Raw) -> None:
    assert told("nodes", changes(after))


def test_it_labels_as_feature_discovery_does_only_where_it_is_to() -> None:
    request = changes({"labels": HOSTNAME | {"nvidia.com/gpu.count": "8"}})
    assert told("nodes", request)
    assert told("nodes", request, "controller.labelNodes=true") == []
    marked = changes({"labels": COMPLETE})
    assert told("nodes", marked, "controller.labelNodes=true") == []


def test_without_nodes_on_demand_it_marks_no_node() -> None:
    results = rendered.objects(*rendered.setting("controller.labelNodes=true"))
    policy = rendered.one(results, "ValidatingAdmissionPolicy", "ration-nodes")
    labels = changes({"labels": HOSTNAME | {"nvidia.com/gpu.count": "8"}})
    assert judging.refusals(policy, labels) == []
    for after in ({"labels": COMPLETE}, {"annotations": KEPT}):
        assert judging.refusals(policy, changes(after))


# Uninstalling.


def test_uninstalling_is_told_what_there_is_to_take_away() -> None:
    def jobs(*values: str) -> str:
        results = rendered.objects(*rendered.setting(*values))
        return str(
            [x["spec"]["template"]["spec"]["containers"] for x in results if x["kind"] == "Job"]
        )

    assert "--nodes-on-demand" in jobs(ON)
    assert f"--observed-shapes-configmap={SEEN}" in jobs(ON)
    for values in ((), (ON, "controller.enabled=false", "allocator=scheduler")):
        assert "on-demand" not in jobs(*values)
        assert "observed-shapes" not in jobs(*values)

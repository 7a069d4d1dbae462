"""Every right of every role is used, and none is lacked: the API server's audit log, read back.

A campaign of all that the driver does, each step with what it is there for; then it is uninstalled.
"""

import base64
import datetime as dt
import functools
import json
from collections.abc import Iterator

import pytest
import yaml

from driver import clock, errors, names
from driver.api import crd
from driver.kube import client, gvr
from driver.kube.http import credentials, transport
from hack.chart import helm, rights
from hack.cluster import api, chart
from simulator import control
from tests.e2e import (
    configured_claims,
    deployments,
    managed_rights,
    page_reader,
    playground,
    release,
    shapes_used,
    thief,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
cluster = release.cluster
EVERYTHING = (
    "--set=controller.replicas=2",
    "--set=controller.labelNodes=true",
    "--set=controller.web.exposed=true",
    "--set=controller.evictOverShare=true",
    f"--set-json=controller.nodes={json.dumps(shapes_used.ON_DEMAND)}",
    "--set=admission.extraArgs={--template-ttl-seconds=60}",
)
"""All that a right depends on but two: managed drivers, below, and `controller.podGroups`, whose
right test_pod_groups.py needs on a cluster that serves PodGroups."""
SHARE = "WithinShare"


_POD_GROUPS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podgroups.scheduling.x-k8s.io
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: scheduling.x-k8s.io
  scope: Namespaced
  names: {kind: PodGroup, plural: podgroups}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
"""As the coscheduling plugin has it: what is not served is never watched."""


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    cluster.kubectl("apply", "-f", "-", input=_POD_GROUPS)
    named = "crd/podgroups.scheduling.x-k8s.io"
    # kubectl wait fails on a CRD that has no status at all yet.
    playground.until(
        lambda: "Established" in cluster.kubectl("get", named, "-o", "yaml"), 30, named
    )
    chart.install(release.WHERE, *EVERYTHING, *managed_rights.flags(cluster))
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    ground = playground.Playground.open(cluster, kube)
    try:
        yield ground
    finally:
        # One that the controller has made anew is not Helm's: it is left, and bars installing.
        lease = ("lease", "ration-controller", "-n", helm.NAMESPACE)
        cluster.kubectl("delete", *lease, "--ignore-not-found")
        release.install()
        for node in cluster.nodes():
            cluster.kubectl("uncordon", node)
        ground.close()


def the_lease_and_the_secret_come_back(field: playground.Playground) -> None:
    """Leases: create. Secrets, configurations: update, patch."""
    for name in ("ration-controller", "ration-admission"):
        field.cluster.kubectl("delete", "lease", name, "-n", helm.NAMESPACE)

        def held(name: str = name) -> bool:
            items = field.kube.list(gvr.LEASES, namespace=helm.NAMESPACE).items
            return any(
                item["metadata"]["name"] == name and item["spec"].get("holderIdentity")
                for item in items
            )

        playground.until(held, 60, f"Lease {name} is there again")
    spoilt = {"data": {"tls.crt": base64.b64encode(b"spoilt").decode()}}
    kind, name = gvr.SECRETS, "ration-admission-tls"
    field.kube.patch(kind, name, spoilt, namespace=helm.NAMESPACE)

    def whole() -> bool:
        secret = field.kube.get(kind, name, helm.NAMESPACE)
        return b"BEGIN CERTIFICATE" in base64.b64decode(secret["data"]["tls.crt"])

    playground.until(whole, 60, "the certificate is written again")


def a_left_over_slice_goes(field: playground.Playground, node: str) -> None:
    """ResourceSlices: delete, by the plugin."""
    spec = {
        "driver": names.DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
    }
    field.kube.create(gvr.RESOURCE_SLICES, {"metadata": {"name": "left-over"}, "spec": spec})

    def gone() -> bool:
        items = field.kube.list(gvr.RESOURCE_SLICES).items
        return all(item["metadata"]["name"] != "left-over" for item in items)

    playground.until(gone, 20, "the left-over slice is deleted")


def a_spaced_claim_is_allocated(field: playground.Playground) -> None:
    """ResourceClaims: update, where no patch can be made, and admission adds no finalizer."""
    spec = field.kube.get(gvr.DEVICE_CLASSES, "gpu-timeslice.ration.dev")["spec"]
    field.kube.create(gvr.DEVICE_CLASSES, {"metadata": {"name": field.namespace}, "spec": spec})
    wire = transport.Transport(credentials.Credentials(field.cluster.kubeconfig), "somebody-else")
    path = gvr.RESOURCE_CLAIMS.path(field.namespace)
    claim = configured_claims.a_configured_claim("spaced")
    claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = field.namespace
    written = json.dumps(claim, indent=2).encode()
    wire.read(transport.Call("POST", path, (5, 10), body=written))
    field.create(release.a_pod("spaced", claims=("spaced",)))
    field.running("spaced")
    field.delete_pod("spaced")
    field.kube.delete(gvr.DEVICE_CLASSES, field.namespace)


def one_claim_is_placed_twice(field: playground.Playground, node: str) -> None:
    """The same event of the same claim, by the controller."""
    field.create(playground.a_claim("again"))
    pod = release.a_pod("again", claims=("again",), nodeSelector=playground.on(node))
    for _ in range(2):
        field.create(pod)
        field.running("again")
        field.delete_pod("again")
        playground.until(lambda: field.device_of("again") is None, 30, "the claim is free")


def what_happens_again_is_counted_on(field: playground.Playground) -> None:
    """Events: patch, by the plugin and by the controller."""

    def counted(reporter: str) -> bool:
        items = field.kube.list(gvr.EVENTS).items
        return any(
            item.get("series") for item in items if item.get("reportingController") == reporter
        )

    for reporter in ("ration-kubeletplugin", "ration-controller"):
        playground.until(functools.partial(counted, reporter), 30, f"{reporter} counts on")


def a_gpu_is_lost_twice(field: playground.Playground, node: str) -> None:
    """ResourceSlices: update. Nodes/status: patch."""

    def slices() -> list[playground.Raw]:
        selector = f"spec.nodeName={node}"
        return field.kube.list(gvr.RESOURCE_SLICES, field_selector=selector).items

    def tainted() -> bool:
        return "ration.dev/gpu-lost" in json.dumps(slices())

    uuid = next(
        device["attributes"]["uuid"]["string"]
        for slice_ in slices()
        for device in slice_["spec"].get("devices", ())
        if "uuid" in device["attributes"]
    )
    base = field.cluster.node_dir(node) / "gpu"
    for _ in range(2):
        control.send(base, "lose", uuid)
        playground.until(tainted, 20, "the GPU is tainted")
        control.send(base, "restore", uuid)
        playground.until(lambda: not tainted(), 20, "the GPU is well again")


REFUSING = {
    "policy": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["resource.k8s.io"],
                    "apiVersions": ["v1"],
                    "operations": ["UPDATE"],
                    "resources": ["resourceclaims/status"],
                }
            ]
        },
        "validations": [{"expression": 'object.metadata.name != "refused"'}],
    },
    "policyBinding": {"policyName": "e2e-refusing", "validationActions": ["Deny"]},
}
"""Somebody else's policy, which refuses what is written of one claim."""


def half_a_decision_is_taken_back(field: playground.Playground) -> None:
    """ResourceClaims: get, by the controller. One of a pod's two claims cannot be written."""
    kinds = {"policy": "ValidatingAdmissionPolicy"}
    kinds["policyBinding"] = f"{kinds['policy']}Binding"
    objects = [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": "e2e-refusing"},
            "spec": REFUSING[key],
        }
        for key, kind in kinds.items()
    ]
    documents = yaml.safe_dump_all(objects)
    field.create(playground.a_claim("fine"), playground.a_claim("refused"))

    def refuses() -> bool:
        try:
            field.kube.patch(
                gvr.RESOURCE_CLAIMS,
                "refused",
                {},
                namespace=field.namespace,
                subresource="status",
            )
        except errors.Invalid:
            return True
        return False

    field.cluster.kubectl("apply", "-f", "-", input=documents)
    try:
        playground.until(refuses, 20, "the policy is in force")
        field.create(release.a_pod("two", claims=("fine", "refused")))
        field.told("two", "AllocationFailed", 30)
        playground.until(lambda: field.device_of("fine") is None, 20, "the other is free again")
    finally:
        field.cluster.kubectl("delete", "-f", "-", input=documents)
    field.delete_pod("two")


def a_refused_pod_is_nudged(field: playground.Playground, node: str) -> None:
    """Pods: patch."""
    root = field.cluster.node_dir(node) / "gpu" / "driver-root"
    pod = release.a_pod("late", claims=("late",), nodeSelector=playground.on(node))
    with deployments.without("libcuda.so", root):
        field.create(playground.a_claim("late"), pod)
        field.says("late", "Ready", "False")
    field.running("late", 60)
    assert "ration.dev/prepare-again" in field.pod("late")["metadata"]["annotations"]
    field.delete_pod("late")


def a_pod_beyond_its_share_is_evicted(field: playground.Playground) -> None:
    """Pods/eviction: create. That it is beyond is said here by hand."""
    field.create(playground.a_template("shared"))
    node = field.cluster.nodes()[0]
    deployments.apply(field, deployments.a_deployment("shared", node))

    def prepared() -> str:
        results = [
            claim for claim in field.claims() if claim["metadata"]["name"].startswith("web-")
        ]
        entries = {
            result["metadata"]["name"]: result.get("status", {}).get("devices", [])
            for result in results
        }
        statement = (name for name, has in entries.items() if any(e.get("conditions") for e in has))
        return str(next(statement, ""))

    try:
        name = playground.until(prepared, 60, "the Deployment's claim is prepared")
        (entry,) = field.claim(name)["status"]["devices"]
        words = {"reason": "OverShare", "message": "by hand"}
        position = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        entry["conditions"].append({"type": SHARE, "status": "False", **words, **position})
        field.kube.patch(
            gvr.RESOURCE_CLAIMS,
            name,
            {"status": {"devices": [entry]}},
            namespace=field.namespace,
            subresource="status",
        )
        playground.until(lambda: deployments.evictions(field), 60, "the pod is evicted")
    finally:
        field.cluster.kubectl("delete", "deployment", "web", "-n", field.namespace)


def a_refused_pod_loses_its_devices(field: playground.Playground, node: str) -> None:
    """Pods: get, by the controller, before it takes an allocation back."""
    claim = release.held(field, node)
    playground.until(lambda: field.device_of(claim) is None, 60, "the claim is free again")
    field.cluster.kubectl("uncordon", node)
    field.delete_pod("waiting")
    field.kube.delete(gvr.RESOURCE_CLAIMS, claim, field.namespace)


def a_template_is_made_and_marked(field: playground.Playground) -> str:
    """ResourceClaimTemplates of converted pods: get, create, patch; the template's name."""
    release.converted(field)
    (template,) = made(field)
    field.running("converted")
    field.delete_pod("converted")
    playground.until(lambda: age_s(field, template) > 16, 30, "some seconds go by")
    release.converted(field)
    used = {entry["metadata"]["name"]: entry for entry in listed(field)}[template]
    assert names.LAST_USED in used["metadata"]["annotations"]
    field.delete_pod("converted")
    return template


def a_template_is_swept(field: playground.Playground, template: str) -> None:
    """ResourceClaimTemplates: list, delete. Pods: list."""
    playground.until(lambda: template not in made(field), 100, "the template is deleted")


def listed(field: playground.Playground) -> list[playground.Raw]:
    kind, selector = gvr.RESOURCE_CLAIM_TEMPLATES, f"{names.CONVERTED}=true"
    return field.kube.list(kind, namespace=field.namespace, label_selector=selector).items


def made(field: playground.Playground) -> list[str]:
    return [entry["metadata"]["name"] for entry in listed(field)]


def age_s(field: playground.Playground, template: str) -> float:
    result = {entry["metadata"]["name"]: entry for entry in listed(field)}[template]
    since = dt.datetime.fromisoformat(result["metadata"]["creationTimestamp"])
    return (clock.SystemClock().now() - since).total_seconds()


def a_pod_that_waits_in_vain_is_told(field: playground.Playground) -> None:
    """Namespaces: get."""
    label = {"metadata": {"labels": {names.CONVERT_LABEL: "false"}}}
    field.kube.patch(gvr.NAMESPACES, field.namespace, label)

    def unconverted() -> bool:
        release.converted(field)
        if "ration.dev/converted" not in field.pod("converted")["metadata"].get("labels", {}):
            return True
        field.delete_pod("converted")
        return False

    playground.until(unconverted, 20, "the webhook knows the label")
    field.told("converted", "NotConverted", 60)
    field.delete_pod("converted")
    field.kube.patch(
        gvr.NAMESPACES, field.namespace, {"metadata": {"labels": {names.CONVERT_LABEL: None}}}
    )

    def converts() -> bool:
        release.converted(field)
        result = field.pod("converted")["metadata"].get("labels", {})
        field.delete_pod("converted")
        return "ration.dev/converted" in result

    playground.until(converts, 20, "the webhook knows that the label has gone")


def a_verdict_reads_a_claim(field: playground.Playground) -> None:
    """ResourceClaims: get, by the webhook."""
    field.create(playground.a_claim("read"), release.a_pod("read", claims=("read",)))
    field.running("read")
    field.delete_pod("read")


_TEAM = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: e2e-important}
value: 1000
---
apiVersion: ration.dev/v1alpha1
kind: Queue
metadata: {name: e2e-team}
spec: {}
"""


def a_more_important_gang_makes_room(field: playground.Playground, node: str) -> None:
    """Queues/status: patch. Reservations: create, patch, delete. Resourceclaims/driver."""
    field.cluster.kubectl("apply", "-f", "-", input=_TEAM)
    field.create(playground.a_template("eight", 8))
    here = {"nodeSelector": playground.on(node)}
    low = release.a_pod("low", template="eight", **here)
    low["metadata"]["annotations"] = {names.PREEMPTIBLE: "true"}
    field.create(low)
    field.running("low")
    high = release.a_pod("high", template="eight", priorityClassName="e2e-important", **here)
    high["metadata"]["labels"] = {names.GANG_LABEL: "high"}
    high["metadata"]["annotations"] = {names.GANG_SIZE: "1"}
    field.create(high)
    try:
        field.running("high", 90)

        def none_held() -> bool:
            return not field.kube.list(gvr.RESERVATIONS, namespace=field.namespace).items

        playground.until(none_held, 30, "the Reservation is deleted")
    finally:
        field.delete_pod("high")
        field.cluster.kubectl("delete", "-f", "-", input=_TEAM)


def it_is_uninstalled(field: playground.Playground, node: str) -> None:
    """The rights of uninstalling; a held claim, conditions and a template are there.

    And a Reservation as the controller makes them, for the pod that waits.
    """
    field.create(playground.a_claim("never", 17), release.a_pod("never", claims=("never",)))
    playground.until(lambda: waits(field, "never"), 30, "a pod says that it waits")
    playground.until(lambda: shapes_used.asking(field), 30, "a pod asks for a node")
    waiting = {"namespace": field.namespace, "name": "gone", "uid": "gone"}
    field.kube.create(
        gvr.RESERVATIONS,
        {
            "apiVersion": crd.VERSION,
            "kind": "Reservation",
            "metadata": {"name": "made"},
            "spec": {"for": {"pod": "waiting"}, "evicting": [waiting]},
        },
        field.namespace,
    )
    release.converted(field)
    field.delete_pod("converted")
    assert made(field)
    release.held(field, node, controller_ends=True)
    code, words = release.uninstall()
    assert code == 0, words
    assert not waits(field, "never")
    assert (shapes_used.asking(field), shapes_used.marked(field)) == ([], [])
    with pytest.raises(errors.NotFound):
        field.kube.get(gvr.CONFIG_MAPS, shapes_used.SEEN, helm.NAMESPACE)


def waits(field: playground.Playground, name: str) -> bool:
    result = field.pod(name)["status"].get("conditions") or ()
    return any(entry["type"] == names.CONDITION_ALLOCATED for entry in result)


def test_every_right_is_used_and_no_request_lacks_one(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    first, *_ = cluster.nodes()
    granted = rights.granted(
        helm.objects(helm.template(*EVERYTHING, *managed_rights.flags(cluster), hooks=True))
    )
    leaving = f"system:serviceaccount:{helm.NAMESPACE}:ration-leave"
    accounts = {user.rpartition(":")[2] for user in granted}
    assert accounts == {
        f"ration-{entry}" for entry in ("admission", "controller", "kubeletplugin", "leave")
    }
    a_verdict_reads_a_claim(field)
    template = a_template_is_made_and_marked(field)
    shapes_used.what_was_learned_is_spoilt(field)
    the_lease_and_the_secret_come_back(field)
    shapes_used.another_replica_leads(field)
    a_left_over_slice_goes(field, first)
    a_spaced_claim_is_allocated(field)
    one_claim_is_placed_twice(field, first)
    a_gpu_is_lost_twice(field, first)
    what_happens_again_is_counted_on(field)
    half_a_decision_is_taken_back(field)
    a_refused_pod_is_nudged(field, first)
    a_refused_pod_loses_its_devices(field, first)
    a_pod_beyond_its_share_is_evicted(field)
    a_more_important_gang_makes_room(field, first)
    shapes_used.a_node_is_asked_for_until_nobody_needs_it(field)
    a_template_is_swept(field, template)
    a_pod_that_waits_in_vain_is_told(field)
    page_reader.somebody_reads(field)
    if managed_rights.flags(cluster):
        managed_rights.a_driver_passes_to_the_controller_and_back(field, first, EVERYTHING)
    usages = usage(cluster, granted)
    assert {user: item.refused for user, item in usages.items() if item.refused} == {}

    it_is_uninstalled(field, first)  # pods outlive their roles by a moment, and are refused
    usages = usage(cluster, granted)
    unused = {user: sorted(map(str, item.unused)) for user, item in usages.items() if item.unused}
    assert unused == {}, "\n".join(text for texts in unused.values() for text in texts)
    assert usages[leaving].refused == ()


def usage(
    cluster: api.Cluster, granted: dict[str, frozenset[rights.Right]]
) -> dict[str, rights.Usage]:
    ours = (entry for entry in cluster.audited() if entry["userAgent"] != thief.AGENT)
    return rights.usage(granted, rights.requests(ours))

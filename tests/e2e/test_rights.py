"""Tests of what the token of one node's plugin may write, and that it is nothing of another node's.

The tokens are those of pods on two nodes. A policy refuses with 403, API validation with 422.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from driver import names
from driver.api import crd
from driver.kube import client, gvr
from driver.kube.client import PatchType
from hack.cluster import api
from tests.e2e import playground, release, thief
from tests.e2e.thief import Call, Raw, Thief, patch

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]
ACCOUNT = "ration-kubeletplugin"
SLICES = gvr.RESOURCE_SLICES.path()
OTHERS = "other.test.ration.dev"
cluster = release.cluster
NOT_MINE = "may only write slices of its own node"
NOT_MY_CLAIM = "may only write the status of claims with devices of its own node"


@dataclass(frozen=True, slots=True)
class World:
    """Nodes A and B, a prepared claim on each, one of another driver on A, and who asks."""

    field: playground.Playground
    a: str
    b: str
    of_a: Thief
    of_none: Thief
    of_controller: Thief
    of_webhook: Thief

    def slice_of(self, node: str) -> Raw:
        """The first slice that a node publishes, as it is now."""
        items = self.field.kube.list(
            gvr.RESOURCE_SLICES, field_selector=f"spec.nodeName={node}"
        ).items
        return min(items, key=lambda entry: str(entry["metadata"]["name"]))

    def own(self, **spec: object) -> Raw:
        """A slice that A may make, but for what is given otherwise; None leaves a field out."""
        pool = {"name": self.a, "generation": 1, "resourceSliceCount": 1}
        whole = {"driver": names.DRIVER, "nodeName": self.a, "pool": pool, **spec}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{self.a}-{names.DRIVER}-09999"},
            "spec": {key: value for key, value in whole.items() if value is not None},
        }

    def claim_path(self, name: str, below: str = "status") -> str:
        return gvr.RESOURCE_CLAIMS.path(self.field.namespace, name, below)


@pytest.fixture(scope="module")
def world(cluster: api.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    field = playground.Playground.open(cluster, kube)
    a, b = cluster.nodes()[:2]

    def of(account: str, pod: str = "") -> Thief:
        return Thief(cluster, thief.token(cluster, account, pod), tmp_path_factory.mktemp("thief"))

    try:
        for name, node in (("here", a), ("there", b)):
            pod = release.a_pod(name, claims=(name,), nodeSelector=playground.on(node))
            field.create(playground.a_claim(name), pod)
        field.create(playground.a_claim("others", deviceClassName=OTHERS))
        write(field, "others", {"allocation": allocation(OTHERS, a)})
        for name in ("here", "there"):
            field.running(name)
            field.says(name, "Ready", "True")
        bound, unbound = of(ACCOUNT, thief.plugin_pod(kube, a)), of(ACCOUNT)
        yield World(field, a, b, bound, unbound, of("ration-controller"), of("ration-admission"))
        write(field, "others", {"allocation": None})
    finally:
        field.close()


def allocation(driver: str, node: str) -> Raw:
    result = {"request": "gpu", "driver": driver, "pool": node, "device": "d0"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}


def write(field: playground.Playground, name: str, status: Raw) -> None:
    """Write as the administrator."""
    kind, body = gvr.RESOURCE_CLAIMS, {"status": status}
    field.kube.patch(kind, name, body, namespace=field.namespace, subresource="status")


def changed(result: Raw, **spec: object) -> Raw:
    """A slice with other fields in its spec; None takes one away."""
    copied = copy.deepcopy(result)
    copied["spec"] = {k: v for k, v in {**copied["spec"], **spec}.items() if v is not None}
    return copied


# Slices


def test_the_token_of_a_node_makes_changes_and_deletes_its_own_slices(world: World) -> None:
    world.of_a.asks(Call("POST", SLICES, world.own()))
    playground.until(
        lambda: "09999" not in names_of(world), 20, "the plugin deletes what is no part of its"
    )

    def rewritten() -> bool:
        mine = world.slice_of(world.a)
        path = gvr.RESOURCE_SLICES.path(name=mine["metadata"]["name"])
        return bool(world.of_a.asks(Call("PUT", path, mine))["metadata"]["name"])

    assert rewritten()


def names_of(world: World) -> str:
    items = world.field.kube.list(gvr.RESOURCE_SLICES).items
    return " ".join(item["metadata"]["name"] for item in items)


PATCHES: dict[str, tuple[PatchType, object]] = {
    "merge": (PatchType.MERGE, {"spec": {"pool": {"generation": 99}}}),
    "strategic": (PatchType.STRATEGIC, {"spec": {"pool": {"generation": 99}}}),
    "json": (
        PatchType.JSON,
        [{"op": "replace", "path": "/spec/pool/generation", "value": 99}],
    ),
    "apply": (
        PatchType.APPLY,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "spec": {"pool": {"generation": 99}},
        },
    ),
}


def test_no_verb_changes_the_slice_of_another_node(world: World) -> None:
    previous = world.slice_of(world.b)
    name = previous["metadata"]["name"]
    path = gvr.RESOURCE_SLICES.path(name=name)
    pool = {**previous["spec"]["pool"], "generation": 99}
    world.of_a.is_refused(Call("PUT", path, changed(previous, pool=pool)), NOT_MINE)
    world.of_a.is_refused(Call("DELETE", path), NOT_MINE)
    world.of_a.is_refused(Call("DELETE", SLICES), "cannot deletecollection resource")
    for kind, body in PATCHES.values():
        if isinstance(body, dict):
            body = {**body, "metadata": {"name": name}}  # noqa: PLW2901 - as apply wants it
        world.of_a.is_refused(patch(path, body, kind), "cannot patch resource")
    assert world.slice_of(world.b) == previous


NEW: dict[str, tuple[Callable[[World], Raw], str]] = {
    "of another node": (lambda w: w.own(nodeName=w.b), NOT_MINE),
    "of another node and its pool": (
        lambda w: w.own(nodeName=w.b, pool={**w.own()["spec"]["pool"], "name": w.b}),
        NOT_MINE,
    ),
    "in the pool of another node": (
        lambda w: w.own(pool={**w.own()["spec"]["pool"], "name": w.b}),
        "in the pool of its node",
    ),
    "of another driver": (lambda w: w.own(driver=OTHERS), "only write slices of driver"),
    "for all nodes": (lambda w: w.own(nodeName=None, allNodes=True), NOT_MINE),
    "for a node selector": (
        lambda w: w.own(nodeName=None, nodeSelector=allocation(OTHERS, w.a)["nodeSelector"]),
        NOT_MINE,
    ),
    "for nodes by device": (
        lambda w: w.own(
            nodeName=None,
            perDeviceNodeSelection=True,
            devices=[{"name": "d0", "nodeName": w.a}],
        ),
        NOT_MINE,
    ),
}


@pytest.mark.parametrize("case", NEW)
def test_no_slice_is_made_that_is_not_of_its_own_node_driver_and_pool(
    world: World, case: str
) -> None:
    built, words = NEW[case]
    body = built(world)
    world.of_a.is_refused(Call("POST", SLICES, body), words)
    world.field.kube.create(gvr.RESOURCE_SLICES, body)  # it was no mistake in the slice
    world.field.kube.delete(gvr.RESOURCE_SLICES, body["metadata"]["name"])


@pytest.mark.parametrize("name", ["{b}-gpu.ration.dev-00077", "any", "{a}-gpu.ration.dev-0", "{a}"])
def test_no_slice_takes_a_name_that_another_node_may_need(world: World, name: str) -> None:
    body = world.own()
    body["metadata"]["name"] = name.format(a=world.a, b=world.b)
    world.of_a.is_refused(Call("POST", SLICES, body), "slices that are named by its node")


def test_a_slice_is_not_moved_to_another_node_nor_from_it_nor_to_all(world: World) -> None:
    mine, theirs = world.slice_of(world.a), world.slice_of(world.b)
    immutable = "field is immutable"
    for result, spec in (
        (mine, {"nodeName": world.b}),
        (mine, {"nodeName": None, "allNodes": True}),
        (mine, {"driver": OTHERS}),
        (theirs, {"nodeName": world.a}),
        (theirs, {"nodeName": world.a, "pool": mine["spec"]["pool"]}),
    ):
        path = gvr.RESOURCE_SLICES.path(name=result["metadata"]["name"])
        world.of_a.is_refused(Call("PUT", path, changed(result, **spec)), immutable, NOT_MINE)


def test_a_token_without_a_node_writes_no_slice(world: World) -> None:
    for name in (world.a, world.b):
        slice_of = world.slice_of(name)
        path = gvr.RESOURCE_SLICES.path(name=slice_of["metadata"]["name"])
        world.of_none.is_refused(Call("PUT", path, slice_of), NOT_MINE)
        world.of_none.is_refused(Call("DELETE", path), NOT_MINE)
    world.of_none.is_refused(Call("POST", SLICES, world.own()), NOT_MINE)
    unnamed = world.own(nodeName=None, allNodes=True)
    world.of_none.is_refused(Call("POST", SLICES, unnamed), NOT_MINE)


# Claims


def devices(world: World, name: str, message: str = "forged") -> list[Raw]:
    """Return what is said of a claim's devices, with other words."""
    (entry,) = copy.deepcopy(world.field.claim(name)["status"]["devices"])
    entry["conditions"][0]["message"] = message
    return [entry]


def by_every_patch(world: World, name: str, status: Raw) -> Iterator[Call]:
    """Merge, strategic, JSON and apply, each of them writing the same."""
    path = world.claim_path(name)
    yield patch(path, {"status": status}, PatchType.MERGE)
    yield patch(path, {"status": {**status, "$patch": "replace"}}, PatchType.STRATEGIC)
    operations = [
        {"op": "add", "path": f"/status/{key}", "value": value}
        if value is not None
        else {"op": "remove", "path": f"/status/{key}"}
        for key, value in status.items()
    ]
    yield patch(path, operations, PatchType.JSON)
    applied = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": world.field.namespace},
        "status": {key: value for key, value in status.items() if value is not None},
    }
    if applied["status"]:
        yield patch(path, applied, PatchType.APPLY)


def test_a_node_token_can_write_the_status_of_a_claim_on_that_node(world: World) -> None:
    entries = devices(world, "here", "said by hand")
    calls = by_every_patch(world, "here", {"devices": entries})
    kinds = {}
    for call in calls:
        if call.kind == PatchType.STRATEGIC.value:  # replaces the allocation too
            call = patch(call.path, {"status": {"devices": entries}}, PatchType.STRATEGIC)  # noqa: PLW2901
        answer = world.of_a.asks(call)
        kinds[call.kind] = answer["status"]["devices"][0]["conditions"][0]["message"]
    assert kinds == {kind.value: "said by hand" for kind in PatchType}


def test_no_verb_writes_the_status_of_a_claim_on_another_node(world: World) -> None:
    previous = world.field.claim("there")
    for item in (world.of_a, world.of_none):
        for call in by_every_patch(world, "there", {"devices": devices(world, "there")}):
            item.is_refused(call, "arbitrary-node:patch", "resourceclaims/binding")
        for call in by_every_patch(world, "there", {"devices": None}):
            item.is_refused(call, "arbitrary-node:patch", "resourceclaims/binding")
        body = {**previous, "status": {**previous["status"], "devices": devices(world, "there")}}
        item.is_refused(Call("PUT", world.claim_path("there"), body), "cannot update resource")
    assert world.field.claim("there") == previous


def test_a_node_changes_nothing_of_claims_on_other_nodes(world: World) -> None:
    for item, claims in ((world.of_a, ("there", "others")), (world.of_none, ("here", "there"))):
        for name in claims:
            previous = world.field.claim(name)
            assert previous["metadata"]["managedFields"]
            bodies: tuple[Raw, ...] = ({"metadata": {"managedFields": [{}]}}, {})
            for body in bodies:
                call = patch(world.claim_path(name), body, PatchType.MERGE)
                item.is_refused(call, NOT_MY_CLAIM)
            assert world.field.claim(name) == previous


@pytest.mark.parametrize("name", ["here", "there", "others"])
def test_no_verb_changes_who_has_a_claims_devices(world: World, name: str) -> None:
    previous = world.field.claim(name)
    elsewhere = allocation(names.DRIVER, world.b)
    consumer = {"resource": "pods", "name": "x", "uid": "6f0c0a39-0000-4000-8000-000000000000"}
    for status in ({"allocation": elsewhere}, {"allocation": None}, {"reservedFor": [consumer]}):
        for call in by_every_patch(world, name, status):
            world.of_a.is_refused(call, "resourceclaims/binding")
    assert world.field.claim(name)["status"] == previous["status"]


def test_nothing_is_said_of_the_devices_of_another_driver(world: World) -> None:
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "Forged",
        "message": "",
        "lastTransitionTime": "2026-11-22T00:00:00Z",
    }
    entry = {"driver": OTHERS, "pool": world.a, "device": "d0", "conditions": [condition]}
    body = {"status": {"devices": [entry]}}
    for kind in (PatchType.MERGE, PatchType.STRATEGIC):
        call = patch(world.claim_path("others"), body, kind)
        world.of_a.is_refused(call, "resourceclaims/driver")
    world.of_a.is_refused(
        patch(
            world.claim_path("here"),
            {"status": {"devices": [*devices(world, "here"), entry]}},
            PatchType.MERGE,
        ),
        "resourceclaims/driver",
    )
    world.field.kube.patch(
        gvr.RESOURCE_CLAIMS,
        "others",
        body,
        namespace=world.field.namespace,
        subresource="status",
    )  # it was no mistake in what was said


@pytest.mark.parametrize("name", ["here", "there"])
def test_a_claim_itself_is_not_changed_nor_deleted_on_its_own_node_either(
    world: World, name: str
) -> None:
    path = world.claim_path(name, "")
    label = {"metadata": {"labels": {"a": "b"}}}
    for kind in (PatchType.MERGE, PatchType.STRATEGIC):
        world.of_a.is_refused(patch(path, label, kind), "cannot patch resource")
    world.of_a.is_refused(Call("PUT", path, world.field.claim(name)), "cannot update resource")
    world.of_a.is_refused(Call("DELETE", path), "cannot delete resource")
    everything = gvr.RESOURCE_CLAIMS.path(world.field.namespace)
    world.of_a.is_refused(Call("DELETE", everything), "cannot deletecollection resource")
    world.of_a.is_refused(Call("GET", everything), "cannot list resource")


def test_a_plugins_token_reads_no_pods_or_secrets_and_gets_no_other_token(world: World) -> None:
    accounts = f"/api/v1/namespaces/{thief.NAMESPACE}/serviceaccounts"
    expected = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    for account in (ACCOUNT, "ration-controller"):
        call = Call("POST", f"{accounts}/{account}/token", expected)
        world.of_a.is_refused(call, "cannot create resource")
    for kind in (gvr.PODS, gvr.SECRETS, gvr.LEASES, gvr.NODES):
        world.of_a.is_refused(Call("GET", kind.path(thief.NAMESPACE)), "cannot list resource")
    world.of_a.asks(Call("GET", gvr.NODES.path(name=world.a)))


# The controller and the webhook


def test_the_controller_writes_only_the_condition_of_a_node(world: World) -> None:
    controller = world.of_controller
    path = gvr.NODES.path(name=world.a, subresource="status")
    time = "2026-11-22T00:00:00Z"
    words = {
        "reason": "Thief",
        "message": "",
        "lastHeartbeatTime": time,
        "lastTransitionTime": time,
    }

    def condition(kind: str, status: str) -> Raw:
        return {"status": {"conditions": [{"type": kind, "status": status, **words}]}}

    refused: tuple[Raw, ...] = (
        {"metadata": {"labels": {"example.com/a": "b"}}},
        {"metadata": {"labels": {"nvidia.com/gpu.product": "b"}}},
        {"metadata": {"annotations": {"example.com/a": "b"}}},
        {"metadata": {"finalizers": ["example.com/a"]}},
        {"status": {"capacity": {"example.com/a": "7"}}},
        {"status": {"addresses": [{"type": "InternalIP", "address": "203.0.113.1"}]}},
        condition("Ready", "False"),
        condition("example.com/Fine", "True"),
    )
    for body in refused:
        call = patch(path, body, PatchType.STRATEGIC)
        controller.is_refused(call, "no more of a node than its condition")
    of_node = gvr.NODES.path(name=world.a)
    label = {"metadata": {"labels": {"nvidia.com/gpu.product": "b"}}}
    controller.is_refused(patch(of_node, label, PatchType.MERGE), "cannot patch resource")
    mine = condition(names.NODE_CONDITION, "True")
    assert controller.asks(patch(path, mine, PatchType.STRATEGIC))["metadata"]["name"] == world.a


def test_the_controller_writes_only_the_pending_condition_of_a_pod(world: World) -> None:
    controller, field = world.of_controller, world.field
    field.create(playground.a_pod("idle", command="exec sleep 3600"))
    path = gvr.PODS.path(field.namespace, "idle", "status")
    spec = field.kube.get(gvr.LEASES, "ration-controller", thief.NAMESPACE)["spec"]
    leads = f"ration-controller/{spec['holderIdentity']}/{spec['leaseTransitions']}"
    time = "2026-11-22T00:00:00Z"
    words = {"reason": "Thief", "message": "", "lastTransitionTime": time}

    def condition(kind: str) -> Raw:
        return {"status": {"conditions": [{"type": kind, "status": "False", **words}]}}

    refused: tuple[Raw, ...] = (
        {"metadata": {"labels": {"example.com/a": "b"}}},
        {"metadata": {"annotations": {"ration.dev/a": "b"}}},
        {"status": {"phase": "Failed"}},
        {"status": {"podIPs": [{"ip": "203.0.113.1"}]}},
        {"status": {"nominatedNodeName": "elsewhere"}},
        condition("Ready"),
        condition("PodScheduled"),
        condition("example.com/Fine"),
    )
    for body in refused:
        call = replace(patch(path, body, PatchType.STRATEGIC), manager=leads)
        controller.is_refused(call, "no more of a pod's status than the condition")
    mine = patch(path, condition(names.CONDITION_ALLOCATED), PatchType.STRATEGIC)
    controller.is_refused(mine, "does not hold the Lease")
    assert controller.asks(replace(mine, manager=leads))["metadata"]["name"] == "idle"


@pytest.mark.parametrize("kind", [gvr.VALIDATING_WEBHOOKS, gvr.MUTATING_WEBHOOKS])
def test_the_webhook_writes_only_the_ca_bundle_of_its_configurations(
    world: World, kind: gvr.Resource
) -> None:
    path = kind.path(name="ration-admission")
    first, *_ = world.field.kube.get(kind, "ration-admission")["webhooks"]
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"]}]
    everything[0]["resources"] = ["*/*"]

    def of_first(**more: object) -> Raw:
        return {"webhooks": [{"name": first["name"], **more}]}

    refused: tuple[Raw, ...] = (
        {"metadata": {"labels": {"example.com/a": "b"}}},
        of_first(rules=everything),
        of_first(failurePolicy="Fail" if first["failurePolicy"] == "Ignore" else "Ignore"),
        of_first(matchConditions=[{"name": "all", "expression": "true"}]),
        of_first(clientConfig={"service": {"namespace": "default", "name": "mine"}}),
        of_first(clientConfig={"service": None, "url": "https://example.com/"}),
        {"webhooks": [{**first, "name": "more.example.com", "rules": everything}]},
        {"webhooks": [{"name": first["name"], "$patch": "delete"}]},
    )
    for body in refused:
        call = patch(path, body, PatchType.STRATEGIC)
        world.of_webhook.is_refused(call, "no more of its configurations than caBundle")
    believed = {"caBundle": first["clientConfig"]["caBundle"]}
    body = of_first(clientConfig=believed)
    answer = world.of_webhook.asks(patch(path, body, PatchType.STRATEGIC))
    assert answer["webhooks"][0]["clientConfig"] == first["clientConfig"]


@pytest.mark.parametrize("kind", ["Opaque", "kubernetes.io/service-account-token"])
def test_the_webhook_creates_no_secret_but_its_certificates(world: World, kind: str) -> None:
    account = {"kubernetes.io/service-account.name": "ration-controller"}
    meta = {"name": "mine", "annotations": account}
    body = {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": meta}
    call = Call("POST", gvr.SECRETS.path(thief.NAMESPACE), body)
    world.of_webhook.is_refused(call, "no other Secret than that of its own certificate")


def test_reservations_and_what_queues_have_are_written_by_the_lease_holder_only(
    world: World,
) -> None:
    controller, kube, namespace = world.of_controller, world.field.kube, world.field.namespace
    version = {"apiVersion": crd.VERSION}
    queue: Raw = {**version, "kind": "Queue", "metadata": {"name": f"{namespace}-q"}, "spec": {}}
    mine: Raw = {**version, "kind": "Reservation", "metadata": {"name": "mine"}}
    mine["spec"] = {"for": {"gang": "a"}}
    kube.create(gvr.QUEUES, queue)
    kube.create(gvr.RESERVATIONS, mine, namespace)
    try:
        of_queue = gvr.QUEUES.path(name=queue["metadata"]["name"])
        label = {"metadata": {"labels": {"a": "b"}}}
        merged = PatchType.MERGE
        controller.is_refused(patch(of_queue, label, merged), "cannot patch resource")
        controller.is_refused(Call("DELETE", of_queue), "cannot delete resource")
        whole = gvr.RESERVATIONS.path(namespace)
        path = gvr.RESERVATIONS.path(namespace, "mine")
        controller.is_refused(patch(path, label, merged), "cannot patch resource")
        for call in (
            Call("POST", whole, {**mine, "metadata": {"name": "another"}}),
            patch(f"{path}/status", {"status": {"message": "a"}}, merged),
            patch(f"{of_queue}/status", {"status": {"used": "a"}}, merged),
        ):
            controller.is_refused(call, "does not hold the Lease")
    finally:
        kube.delete(gvr.QUEUES, queue["metadata"]["name"])

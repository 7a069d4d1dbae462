"""BB-10: a node's plugin may touch what is its node's; admin access is for marked namespaces."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from driver import errors
from driver.kube import client, gvr
from tests.blackbox import subject
from tests.blackbox.catalogue import CLUSTER, case
from tests.blackbox.ground import room, seat

CONFINED, STATUS = subject.Feature.CONFINED, subject.Feature.STATUS
ORIGIN = f"{CLUSTER}: must apply per-node permission checks"
SLICES = gvr.RESOURCE_SLICES
REFUSED = (errors.Forbidden, errors.Invalid)


@pytest.fixture
def plugin(here: seat.Seat) -> client.KubeClient:
    """A client with the token of the node's plugin."""
    return client.KubeClient.connect(here.places.kubeconfig, "blackbox-as-the-plugin")


@pytest.fixture
def elsewhere(here: seat.Seat) -> Iterator[dict[str, Any]]:
    """A slice of the driver's on another node, made by the administrator."""
    name = f"elsewhere-{here.node}"
    node = {"metadata": {"name": name}}
    here.kube.create(gvr.NODES, node)
    created = here.kube.create(SLICES, a_slice(here, name, name))
    yield created
    here.kube.delete(SLICES, created["metadata"]["name"])
    here.kube.delete(gvr.NODES, name)


def a_slice(here: seat.Seat, name: str, node: str) -> dict[str, Any]:
    """A slice with one device."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": here.subject.driver, "nodeName": node, "pool": pool}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {**spec, "devices": [{"name": "odd"}]},
    }


@case("BB-10.1", f"{ORIGIN} (create)", CONFINED)
def test_a_plugin_makes_no_slice_for_another_node(
    here: seat.Seat, plugin: client.KubeClient
) -> None:
    with pytest.raises(REFUSED):
        plugin.create(SLICES, a_slice(here, f"made-{here.node}", "another-node"))


@case("BB-10.2", f"{ORIGIN} (update)", CONFINED)
def test_a_plugin_changes_no_slice_of_another_node(
    plugin: client.KubeClient, elsewhere: dict[str, Any]
) -> None:
    changed = copy.deepcopy(elsewhere)
    changed["spec"]["devices"][0]["name"] = "changed"
    with pytest.raises(REFUSED):
        plugin.replace(SLICES, changed["metadata"]["name"], changed)


@case("BB-10.3", f"{ORIGIN} (delete)", CONFINED)
def test_a_plugin_deletes_no_slice_of_another_node(
    plugin: client.KubeClient, elsewhere: dict[str, Any]
) -> None:
    with pytest.raises(REFUSED):
        plugin.delete(SLICES, elsewhere["metadata"]["name"])


@case("BB-10.4", f"{ORIGIN} (cluster-wide slices)", CONFINED)
def test_a_plugin_makes_no_slice_for_all_nodes(here: seat.Seat, plugin: client.KubeClient) -> None:
    everywhere = a_slice(here, f"all-{here.node}", here.node)
    del everywhere["spec"]["nodeName"]
    everywhere["spec"]["allNodes"] = True
    everywhere["spec"]["pool"]["name"] = f"all-{here.node}"
    with pytest.raises(REFUSED):
        plugin.create(SLICES, everywhere)
    # Nothing else is wrong with it; there it would be in the way of other nodes' cases.
    dry = ("create", "--dry-run=server", "--filename=-")
    here.cluster.kubectl(*dry, input=json.dumps(everywhere))


@case(
    "BB-10.5",
    f"{CLUSTER}: validate ResourceClaimTemplate and ResourceClaim for admin access",
)
def test_admin_access_is_refused_in_a_namespace_without_the_mark(field: room.Room) -> None:
    expected = {**field.seat.subject.device.request, "adminAccess": True}
    with pytest.raises(REFUSED):
        field.claim("admin", {"name": "one", "exactly": expected})
    with pytest.raises(REFUSED):
        field.template("admin", {"name": "one", "exactly": expected})
    label = "resource.kubernetes.io/admin-access=true"
    field.cluster.kubectl("label", "namespace", field.namespace, label)
    field.claim("admin", {"name": "one", "exactly": expected})


@case("BB-10.6", f"{ORIGIN} (claims are not allocated by a node)", CONFINED)
def test_a_plugin_allocates_nothing(field: room.Room, plugin: client.KubeClient) -> None:
    field.claim("given")
    field.pod("given", "given")
    field.running("given")
    field.claim("wanted")
    body = {"status": {"allocation": field.ground.claim("given")["status"]["allocation"]}}
    with pytest.raises(REFUSED):
        patch_status(plugin, field, "wanted", body)


@case(
    "BB-10.7",
    f"{CLUSTER}: must be possible for a node ServiceAccount to update the node "
    "ResourceClaim.Status.Devices once allocated",
    STATUS,
)
def test_a_plugin_may_tell_of_its_own_nodes_devices(
    field: room.Room, plugin: client.KubeClient
) -> None:
    field.claim("mine")
    field.pod("mine", "mine")
    field.running("mine")
    patch_status(plugin, field, "mine", _told(field, "mine"))


@case(
    "BB-10.8",
    f"{CLUSTER}: must be impossible for a node ServiceAccount to update the non-node "
    "ResourceClaim.Status.Devices once allocated",
    STATUS,
)
def test_a_plugin_may_not_tell_of_another_nodes_devices(
    field: room.Room, plugin: client.KubeClient
) -> None:
    field.claim("theirs")
    result = {
        "request": "one",
        "driver": field.seat.subject.driver,
        "pool": "another-node",
        "device": "odd",
    }
    term = {"key": "metadata.name", "operator": "In", "values": ["another-node"]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [term]}]},
    }
    patch_status(field.kube, field, "theirs", {"status": {"allocation": allocation}})
    with pytest.raises(REFUSED):
        patch_status(plugin, field, "theirs", _told(field, "theirs"))
    patch_status(field.kube, field, "theirs", {"status": {"allocation": None}})


def _told(field: room.Room, claim: str) -> dict[str, Any]:
    (result,) = field.results(claim)
    document = {key: result[key] for key in ("driver", "pool", "device")}
    return {"status": {"devices": [{**document, "data": {"from": "blackbox"}}]}}


def patch_status(
    kube: client.KubeClient, field: room.Room, claim: str, body: dict[str, Any]
) -> None:
    """A merge patch of the status."""
    kube.patch(
        gvr.RESOURCE_CLAIMS,
        claim,
        body,
        namespace=field.namespace,
        subresource="status",
        kind=client.PatchType.MERGE,
    )

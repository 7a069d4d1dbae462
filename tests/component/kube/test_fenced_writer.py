import pytest

from driver import errors
from driver.kube import client, fenced_writer, gvr, lease
from tests.fakes.apiserver import faults, server

TERM = lease.Term("controller-0_x7", 3)
POD = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"nodeName": "node-a"}}


def fence(request: faults.Request) -> str | None:
    """Apply the admission policy of D22, for a lease held in term 3."""
    if request.field_manager != "ration-controller/controller-0_x7/3":
        return "the fence: not the leader"
    return None


@pytest.fixture
def pod(api: server.ApiServer) -> gvr.Object:
    api.deny_with(lambda r: None if r.method == "DELETE" else fence(r))
    return api.put(gvr.PODS, POD)


def test_every_write_names_its_term(
    api: server.ApiServer, kube: client.KubeClient, pod: gvr.Object
) -> None:
    fenced = fenced_writer.FencedWriter(kube, lambda: TERM)
    body = {"status": {"message": "hello"}}
    fenced.patch(gvr.PODS, "p", body, namespace="ns", subresource="status")
    fenced.create(gvr.PODS, {"metadata": {"name": "q"}}, "ns")
    fenced.create_eviction("p", "ns", uid=pod["metadata"]["uid"])
    assert {r.field_manager for r in api.requests} == {"ration-controller/controller-0_x7/3"}
    evicted = api.read(gvr.PODS, "p", "ns")
    assert evicted is not None
    assert evicted["status"] == {"message": "hello"}
    assert "deletionTimestamp" in evicted["metadata"]


def test_a_stale_term_is_fenced_off_by_the_server(
    api: server.ApiServer, kube: client.KubeClient, pod: gvr.Object
) -> None:
    stale = fenced_writer.FencedWriter(kube, lambda: lease.Term("controller-0_x7", 2))
    with pytest.raises(errors.Forbidden, match="fence"):
        stale.patch(gvr.PODS, "p", {"metadata": {"labels": {"a": "b"}}}, namespace="ns")
    with pytest.raises(errors.Forbidden, match="fence"):
        stale.create_eviction("p", "ns", uid=pod["metadata"]["uid"])
    assert api.read(gvr.PODS, "p", "ns") == pod


def test_an_eviction_of_another_pod_of_that_name_is_a_conflict(
    kube: client.KubeClient, pod: gvr.Object
) -> None:
    assert pod["metadata"]["uid"] != "another"
    fenced = fenced_writer.FencedWriter(kube, lambda: TERM)
    with pytest.raises(errors.Conflict):
        fenced.create_eviction("p", "ns", uid="another")


def test_without_a_term_nothing_is_sent(
    api: server.ApiServer, kube: client.KubeClient, pod: gvr.Object
) -> None:
    fenced = fenced_writer.FencedWriter(kube, lambda: None)
    uid = pod["metadata"]["uid"]
    with pytest.raises(fenced_writer.NotLeading):
        fenced.patch(gvr.PODS, "p", {}, namespace="ns")
    with pytest.raises(fenced_writer.NotLeading):
        fenced.create(gvr.PODS, {}, "ns")
    with pytest.raises(fenced_writer.NotLeading):
        fenced.create_eviction("p", "ns", uid=uid)
    with pytest.raises(fenced_writer.NotLeading):
        fenced.delete(gvr.PODS, "p", "ns", uid=uid)
    with pytest.raises(fenced_writer.NotLeading):
        fenced.apply(gvr.NODES, "node-a", {}, manager="ration-nodes")
    assert not api.requests


def test_an_apply_keeps_foreign_fields_and_one_field_manager_across_terms(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    api.put(gvr.NODES, {"metadata": {"name": "node-a", "labels": {"theirs": "1"}}})

    def say(labels: dict[str, str], term: lease.Term) -> dict[str, str]:
        meta = {"name": "node-a", "labels": labels}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
        fenced = fenced_writer.FencedWriter(kube, lambda: term)
        answer = fenced.apply(gvr.NODES, "node-a", body, manager="ration-nodes")
        return dict(answer["metadata"]["labels"])

    assert say({"ours": "1"}, TERM) == {"theirs": "1", "ours": "1"}
    assert say({}, lease.Term("controller-1_y2", 4)) == {"theirs": "1"}
    assert {r.field_manager for r in api.requests} == {"ration-nodes"}

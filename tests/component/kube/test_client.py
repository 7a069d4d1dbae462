import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver import clock, errors
from driver.kube import client, gvr
from tests.fakes.apiserver import faults, server

CLAIMS = gvr.RESOURCE_CLAIMS


def claim(name: str, **extra: object) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {}, **extra}


def test_a_listing_follows_all_pages(api: server.ApiServer, kube: client.KubeClient) -> None:
    for n in range(5):
        api.put(CLAIMS, claim(f"c{n}"))
    listing = kube.list(CLAIMS, limit=2)
    assert [c["metadata"]["name"] for c in listing.items] == ["c0", "c1", "c2", "c3", "c4"]
    assert listing.version == str(api.storage.version)
    assert len(api.lists()) == 3


def test_a_listing_that_expires_midway_starts_again(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    for n in range(4):
        api.put(CLAIMS, claim(f"c{n}"))
    second_page = lambda r: "continue" in r.query  # noqa: E731 - one condition, used once
    api.faults.add(faults.Answer(410, "Expired"), second_page, times=1)
    assert len(kube.list(CLAIMS, limit=2).items) == 4
    assert len(api.lists()) == 4


def test_selectors_choose_what_is_listed(api: server.ApiServer, kube: client.KubeClient) -> None:
    for n in range(3):
        pod = claim(f"p{n}", spec={"nodeName": f"node-{n}"})
        pod["metadata"]["labels"] = {"n": str(n)}
        api.put(gvr.PODS, pod)
    by_field = kube.list(gvr.PODS, namespace="ns", field_selector="spec.nodeName=node-1")
    by_label = kube.list(gvr.PODS, label_selector="n!=1")
    assert [p["metadata"]["name"] for p in by_field.items] == ["p1"]
    assert [p["metadata"]["name"] for p in by_label.items] == ["p0", "p2"]


def test_a_conditional_patch_of_an_object_that_changed_is_a_conflict(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    old = api.put(CLAIMS, claim("c"))["metadata"]["resourceVersion"]
    kube.patch(CLAIMS, "c", {"metadata": {"labels": {"a": "1"}}}, namespace="ns")
    body = {"metadata": {"resourceVersion": old, "labels": {"a": "2"}}}
    with pytest.raises(errors.Conflict):
        kube.patch(CLAIMS, "c", body, namespace="ns")
    stored = api.read(CLAIMS, "c", "ns")
    assert stored is not None
    assert stored["metadata"]["labels"] == {"a": "1"}


def test_a_strategic_patch_adds_a_finalizer_and_drops_one_consumer(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    status = {"allocation": {}, "reservedFor": [{"uid": "1", "name": "a"}, {"uid": "2"}]}
    first = claim("c", status=status | {"allocation": {"devices": {}}})
    first["metadata"]["finalizers"] = ["theirs"]
    api.put(CLAIMS, first)
    kind = client.PatchType.STRATEGIC
    body: dict[str, Any] = {"metadata": {"finalizers": ["ours"]}}
    kube.patch(CLAIMS, "c", body, namespace="ns", kind=kind)
    body = {"status": {"reservedFor": [{"$patch": "delete", "uid": "1"}]}}
    answer = kube.patch(CLAIMS, "c", body, namespace="ns", subresource="status", kind=kind)
    assert answer["metadata"]["finalizers"] == ["theirs", "ours"]
    assert answer["status"]["reservedFor"] == [{"uid": "2"}]


def test_the_field_manager_goes_with_the_write(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    kube.create(CLAIMS, claim("c"), "ns", field_manager="me/1")
    kube.patch(CLAIMS, "c", {"metadata": {"labels": {}}}, namespace="ns", field_manager="me/2")
    assert [r.field_manager for r in api.requests] == ["me/1", "me/2"]


def test_conflicts_missing_objects_and_invalid_ones_raise_different_errors(
    kube: client.KubeClient,
) -> None:
    kube.create(CLAIMS, claim("c"), "ns")
    with pytest.raises(errors.AlreadyExists):
        kube.create(CLAIMS, claim("c"), "ns")
    with pytest.raises(errors.NotFound):
        kube.get(CLAIMS, "d", "ns")
    with pytest.raises(errors.Invalid, match="immutable"):
        kube.patch(CLAIMS, "c", {"spec": {"a": 1}}, namespace="ns")


def test_a_delete_spares_an_object_of_another_uid(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    uid = api.put(CLAIMS, claim("c"))["metadata"]["uid"]
    with pytest.raises(errors.Conflict):
        kube.delete(CLAIMS, "c", "ns", uid="another")
    kube.delete(CLAIMS, "c", "ns", uid=uid)
    assert api.read(CLAIMS, "c", "ns") is None


@pytest.mark.parametrize("status", [413, 429, 503])
def test_nothing_is_retried_behind_the_callers_back(
    api: server.ApiServer, kube: client.KubeClient, status: int
) -> None:
    api.faults.add(faults.Answer(status, retry_after_s=7))
    with pytest.raises(errors.ApiError) as caught:
        kube.get(CLAIMS, "c", "ns")
    assert (caught.value.status, caught.value.retry_after_s) == (status, 7)
    assert len(api.requests) == 1


def test_a_dropped_connection_is_unreachable_and_not_retried(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    api.faults.add(faults.Drop())
    with pytest.raises(errors.Unreachable, match="resourceclaims"):
        kube.get(CLAIMS, "c", "ns")
    assert len(api.requests) == 1


def test_a_server_that_is_not_there_is_unreachable(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    api.down()
    with pytest.raises(errors.Unreachable):
        kube.get(CLAIMS, "c", "ns")


def test_a_server_that_never_answers_is_given_up_in_time(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    api.faults.add(faults.HalfOpen())
    time = clock.SystemClock()
    started = time.monotonic()
    with pytest.raises(errors.Unreachable):
        kube.with_timeout(0.4).get(CLAIMS, "c", "ns")
    assert time.monotonic() - started < 2


def test_a_stale_token_is_read_anew_once(api: server.ApiServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    kube = client.KubeClient.connect(api.kubeconfig(tmp_path, token), "test")
    api.allow_tokens("old", "new")
    kube.list(CLAIMS)
    token.write_text("new\n")
    kube.list(CLAIMS)
    sent = [r.headers["Authorization"] for r in api.requests]
    assert sent == ["Bearer old", "Bearer new"]
    api.allow_tokens("third")
    with pytest.raises(errors.Unauthorized):
        kube.list(CLAIMS)
    assert len(api.requests) == 4


def test_credentials_that_are_being_rewritten_fail_only_the_calls_meanwhile(
    api: server.ApiServer, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    kube = client.KubeClient.connect(api.kubeconfig(tmp_path, token), "test")
    token.unlink()
    with pytest.raises(errors.Unreachable, match="credentials"):
        kube.list(CLAIMS)
    token.write_text("two")
    kube.list(CLAIMS)
    assert [r.headers["Authorization"] for r in api.requests] == ["Bearer two"]


def test_a_kubeconfig_that_makes_no_sense_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("clusters: []")
    with pytest.raises(errors.BadInput, match="kubeconfig"):
        client.KubeClient.connect(path, "test")
    with pytest.raises(errors.BadInput):
        client.KubeClient.connect(tmp_path / "missing", "test")


def test_a_token_of_an_exec_plugin_is_sent(api: server.ApiServer, tmp_path: Path) -> None:
    path = api.kubeconfig(tmp_path)
    document = yaml.safe_load(path.read_text())
    version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "short"}}
    plugin = {"apiVersion": version, "command": "echo", "args": [json.dumps(credential)]}
    document["users"][0]["user"] = {"exec": plugin | {"interactiveMode": "Never"}}
    path.write_text(yaml.safe_dump(document))
    client.KubeClient.connect(path, "test").list(CLAIMS)
    assert [r.headers["Authorization"] for r in api.requests] == ["Bearer short"]


@pytest.mark.parametrize("program", ["controller", "kubeletplugin", "webhook", "mps"])
def test_a_program_starts_without_the_official_client(program: str) -> None:
    code = f"import sys, driver.{program}.__main__; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_many_threads_share_one_client(api: server.ApiServer, kube: client.KubeClient) -> None:
    api.put(CLAIMS, claim("c", n=0))
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                kube.get(CLAIMS, "c", "ns")
        except errors.ApiError as e:
            failed.append(e)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(api.requests) == 80


def test_the_server_says_what_it_is(kube: client.KubeClient) -> None:
    assert kube.server_version() == (1, 37, "v1.37.1")
    assert kube.server_version() >= (1, 36)


def test_bodies_are_written_as_the_server_would_write_them(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    """It compares opaque parameters byte for byte: spaces would make their claim immutable."""
    kube.create(gvr.NODES, {"metadata": {"name": "n", "annotations": {"b": "ü", "a": "1"}}})
    (sent,) = [request.raw for request in api.requests if request.method == "POST"]
    assert sent == '{"metadata":{"annotations":{"a":"1","b":"ü"},"name":"n"}}'.encode()


def test_half_a_surrogate_pair_is_written_as_it_came(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    """A user's parameters for another driver may hold one, and allocations hand them on."""
    kube.create(gvr.NODES, json.loads(r'{"metadata":{"name":"n","labels":{"a":"\ud800ü"}}}'))
    (sent,) = [request.raw for request in api.requests if request.method == "POST"]
    assert sent == r'{"metadata":{"labels":{"a":"\ud800ü"},"name":"n"}}'.encode()

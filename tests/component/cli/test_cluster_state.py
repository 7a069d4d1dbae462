"""Tests of what commands see of an API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import errors
from driver.cli import cluster_state
from driver.kube import gvr
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.support.builders import objects


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        running.put(gvr.NODES, objects.a_node())
        running.put(gvr.RESOURCE_SLICES, objects.a_slice())
        running.put(gvr.DEVICE_CLASSES, objects.a_class())
        claim = objects.a_claim(status=objects.allocated("node-a", "gpu-0"))
        running.put(gvr.RESOURCE_CLAIMS, claim)
        running.put(gvr.PODS, objects.a_pod())
        running.put(gvr.PODS, objects.a_pod("old", status={"phase": "Succeeded"}))
        yield running


def test_all_that_deciding_looks_at_is_read_and_nothing_is_written(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    seen = cluster_state.read(None, api.kubeconfig(tmp_path))
    caches = seen.dump.caches
    assert (seen.unreadable, seen.dump.problems, dict(seen.dump.ignored)) == ((), (), {})
    assert [[*kind] for kind in (caches.nodes, caches.classes, caches.claims, caches.pods)] == [
        ["node-a"],
        ["gpu.ration.dev"],
        ["default/claim"],
        ["default/pod"],
    ]
    assert {request.method for request in api.requests} == {"GET"}
    assert not any("secrets" in request.path for request in api.requests)


def test_forbidden_optional_kinds_are_reported(api: api_server.ApiServer, tmp_path: Path) -> None:
    api.faults.add(faults.Answer(403), lambda request: "persistentvolume" in request.path, times=2)
    seen = cluster_state.read(None, api.kubeconfig(tmp_path))
    assert [name.partition(":")[0] for name in seen.unreadable] == [
        "persistentvolumeclaims",
        "persistentvolumes",
    ]
    assert [*seen.dump.caches.nodes] == ["node-a"]


def test_a_kind_that_the_server_does_not_have_is_empty(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    api.faults.add(faults.Answer(404), lambda request: "devicetaintrules" in request.path, times=2)
    seen = cluster_state.read(None, api.kubeconfig(tmp_path))
    assert (seen.unreadable, dict(seen.dump.caches.rules)) == ((), {})


def test_without_the_right_to_see_nodes_there_is_nothing_to_decide_on(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    api.faults.add(faults.Answer(403), lambda request: request.path.endswith("/nodes"), times=1)
    with pytest.raises(errors.Forbidden):
        cluster_state.read(None, api.kubeconfig(tmp_path))

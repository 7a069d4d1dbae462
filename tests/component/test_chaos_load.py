"""The load of chaos against a stand-in for the API server."""

import random  # noqa: TID251 - numbers are handed in
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import clock
from driver.kube import client, gvr
from tests.chaos import asks, load
from tests.fakes.apiserver import server

NAMESPACE = "default"


@pytest.fixture
def fake() -> Iterator[server.ApiServer]:
    with server.ApiServer() as api_server:
        yield api_server


@pytest.fixture
def kube(fake: server.ApiServer) -> Iterator[client.KubeClient]:
    with tempfile.TemporaryDirectory() as folder:
        yield client.KubeClient.connect(fake.kubeconfig(Path(folder)), "test")


def runs(kube: client.KubeClient) -> None:
    for item in kube.list(gvr.PODS, namespace=NAMESPACE).items:
        body = {"status": {"phase": "Running"}}
        name = item["metadata"]["name"]
        kube.patch(gvr.PODS, name, body, namespace=NAMESPACE, subresource="status")


def with_a_claim_of_its_own(kube: client.KubeClient) -> tuple[load.Load, load.Work]:
    """A load, and a work of it that runs and has a claim by name."""
    created = load.Load(kube, NAMESPACE, 7, load.Measure(30), clock.SystemClock())
    created.tick()
    runs(kube)
    created.tick()
    works = created.running(random.Random(1))  # noqa: S311 - no secret
    return created, next(work for work in works if work.ask.form is asks.Form.NAMED)


def test_a_claim_is_deleted_before_its_pods(
    fake: server.ApiServer, kube: client.KubeClient
) -> None:
    """Between the two another thread may look, and make what is missing."""
    created, work = with_a_claim_of_its_own(kube)
    previous = len(fake.requests)
    created.recreate(work)
    paths = [request.path for request in fake.requests[previous:]]
    assert "resourceclaims" in paths[0]
    assert all("pods" in path for path in paths[1:])
    assert not work.complete


def test_a_claim_that_is_about_to_go_is_not_taken_for_the_new_one(
    kube: client.KubeClient,
) -> None:
    """Its pod would wait for ever for a claim that nobody makes."""
    created, work = with_a_claim_of_its_own(kube)
    name = work.ask.claim
    held = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
    kube.patch(gvr.RESOURCE_CLAIMS, name, held, namespace=NAMESPACE)
    previous = kube.get(gvr.RESOURCE_CLAIMS, name, NAMESPACE)["metadata"]["uid"]
    created.recreate(work)
    created.tick()
    assert not work.complete
    kube.patch(gvr.RESOURCE_CLAIMS, name, {"metadata": {"finalizers": None}}, namespace=NAMESPACE)
    created.tick()
    assert work.complete
    assert kube.get(gvr.RESOURCE_CLAIMS, name, NAMESPACE)["metadata"]["uid"] != previous

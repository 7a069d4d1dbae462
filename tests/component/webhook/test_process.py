"""The webhook as a process, against an API server in memory and a client that believes caBundle."""

import base64
import contextlib
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from driver.kube import gvr
from hack.chart import helm
from tests.fakes import waiting
from tests.fakes.apiserver import patches
from tests.fakes.apiserver import server as api_server
from tests.support.builders import objects

ROOT = Path(__file__).parents[3]
SECRET = "ration-admission-tls", "ration-system"
HOST = "ration-admission.ration-system.svc"
Raw = dict[str, Any]


def a_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


class Webhook:
    """One replica."""

    def __init__(self, api: api_server.ApiServer, folder: Path) -> None:
        self.api = api
        self.port, self.metrics = a_port(), a_port()
        self._folder = folder
        command = [
            sys.executable,
            "-m",
            "driver.webhook",
            f"--kubeconfig={api.kubeconfig(folder)}",
            f"--webhook-address=127.0.0.1:{self.port}",
            f"--metrics-address=127.0.0.1:{self.metrics}",
        ]
        with (folder / f"log-{self.port}").open("w") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stderr=log, text=True)

    def is_ready(self) -> bool:
        try:
            return "ok" in self.page("readyz")
        except OSError:
            return False

    def page(self, name: str) -> str:
        url = f"http://127.0.0.1:{self.metrics}/{name}"
        with urllib.request.urlopen(url, timeout=5) as urlopen:
            return str(urlopen.read().decode())

    def ask(self, path: str, obj: Raw, kind: tuple[str, str, str], **more: Any) -> Raw:
        """Ask as the API server does: by the Service's name, believing caBundle."""
        trusted = self._folder / "ca.pem"
        trusted.write_bytes(believed(self.api))
        names = dict(zip(("group", "version", "kind"), kind, strict=True))
        request = {"uid": "u", "kind": names, "operation": "CREATE", "object": obj, **more}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        pool = urllib3.HTTPSConnectionPool(
            "127.0.0.1",
            self.port,
            ca_certs=str(trusted),
            server_hostname=HOST,
            assert_hostname=HOST,
            retries=False,
            timeout=10,
        )
        with pool:
            answer = pool.request("POST", path, body=json.dumps(body))
        assert answer.status == 200, answer.data
        return dict(answer.json()["response"])


def believed(api: api_server.ApiServer) -> bytes:
    result = api.read(gvr.VALIDATING_WEBHOOKS, "ration-admission") or {}
    bundle = result["webhooks"][0]["clientConfig"].get("caBundle", "")
    return base64.b64decode(bundle)


def prepared(running: api_server.ApiServer) -> None:
    for kind in (gvr.VALIDATING_WEBHOOKS, gvr.MUTATING_WEBHOOKS):
        hook = {"name": "a.ration.dev", "clientConfig": {"service": {}}}
        running.put(kind, {"metadata": {"name": "ration-admission"}, "webhooks": [hook]})
    for entry in helm.usual("DeviceClass"):
        running.put(gvr.DEVICE_CLASSES, entry)
    for name, labels in (("team", {}), ("kept", {"ration.dev/convert": "false"})):
        running.put(gvr.NAMESPACES, {"metadata": {"name": name, "labels": labels}})
    running.put(gvr.RESOURCE_SLICES, objects.a_slice("node-a", 2))


@contextlib.contextmanager
def two(api: api_server.ApiServer, folder: Path) -> Iterator[list[Webhook]]:
    """Two replicas, ready."""
    webhooks = [Webhook(api, folder) for _ in range(2)]
    try:
        waiting.until(lambda: all(webhook.is_ready() for webhook in webhooks), within_s=60)
        yield webhooks
    finally:
        for item in webhooks:
            item.process.kill()
            item.process.wait()


@pytest.fixture(scope="module")
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        prepared(running)
        yield running


@pytest.fixture(scope="module")
def replicas(
    api: api_server.ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Webhook]]:
    with two(api, tmp_path_factory.mktemp("webhook")) as webhooks:
        yield webhooks


def gpu_pod() -> Raw:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {"metadata": {"name": "web"}, "spec": {"containers": [container]}}


def made(api: api_server.ApiServer) -> list[Raw]:
    results = api.all(gvr.RESOURCE_CLAIM_TEMPLATES)
    return [result for result in results if result["metadata"]["name"].startswith("ration-")]


def refused(webhook: Webhook) -> float:
    """Return how many reviews a replica has refused; other tests ask the same replicas."""
    series = 'dra_gpu_admission_requests_total{verdict="refused",webhook="validate"} '
    (line,) = [line for line in webhook.page("metrics").splitlines() if line.startswith(series)]
    return float(line.removeprefix(series))


def test_replicas_convert_refuse_and_warn_by_one_certificate(
    api: api_server.ApiServer, replicas: list[Webhook]
) -> None:
    pod, kind = gpu_pod(), ("", "v1", "Pod")
    for webhook in replicas:
        dry = webhook.ask("/mutate", pod, kind, namespace="team", dryRun=True)
        assert "patch" in dry
        assert "patch" not in webhook.ask("/mutate", pod, kind, namespace="kept")
    assert made(api) == []
    for webhook in replicas:
        answer = webhook.ask("/mutate", pod, kind, namespace="team")
        operations = json.loads(base64.b64decode(answer["patch"]))
        after = patches.json_patch(pod, operations)
        (template,) = made(api)
        entry = {
            "name": "ration-0",
            "resourceClaimTemplateName": template["metadata"]["name"],
        }
        assert after["spec"]["resourceClaims"] == [entry]
    claim = ("resource.k8s.io", "v1", "ResourceClaim")
    previous = [refused(item) for item in replicas]
    for webhook in replicas:
        huge = {"strategy": "MPS", "mps": {"pinnedMemory": "200Gi"}}
        warned = objects.a_claim("one", config=[objects.a_config(sharing=huge)])
        assert "80Gi at most" in webhook.ask("/validate", warned, claim)["warnings"][0]
        wrong = objects.a_claim("one", config=[objects.a_config(crossNamespace=True)])
        assert "crossNamespace" in webhook.ask("/validate", wrong, claim)["status"]["message"]
    assert [refused(item) for item in replicas] == [count + 1 for count in previous]


def test_a_pod_of_a_labelled_class_is_converted_and_of_any_other_not(
    api: api_server.ApiServer, replicas: list[Webhook]
) -> None:
    webhook, kind = replicas[0], ("", "v1", "Pod")
    for name, labels in (("labelled", {"ration.dev/convert": "true"}), ("plain", {})):
        entry = objects.a_class(name, extendedResourceName=f"example.com/{name}")
        entry["metadata"]["labels"] = labels
        api.put(gvr.DEVICE_CLASSES, entry)

    def patched(resource: str, namespace: str = "team") -> list[Raw]:
        container = {"name": "main", "resources": {"limits": {resource: "1"}}}
        pod = {"metadata": {"name": "web"}, "spec": {"containers": [container]}}
        answer = webhook.ask("/mutate", pod, kind, namespace=namespace, dryRun=True)
        return list(json.loads(base64.b64decode(answer.get("patch", "W10="))))

    waiting.until(lambda: bool(patched("example.com/labelled")), within_s=30)
    assert patched("deviceclass.resource.kubernetes.io/labelled")
    assert not patched("example.com/labelled", "kept")
    assert not patched("example.com/plain")
    assert not patched("deviceclass.resource.kubernetes.io/plain")


def test_a_pod_is_measured_by_the_template_that_it_names(
    api: api_server.ApiServer, replicas: list[Webhook]
) -> None:
    share = objects.a_claim("share", objects.a_request(deviceClassName="gpu-mps.ration.dev"))
    template = {"metadata": objects.meta("share", "team"), "spec": {"spec": share["spec"]}}
    api.put(gvr.RESOURCE_CLAIM_TEMPLATES, template)
    container = {"name": "main", "resources": {"claims": [{"name": "a"}, {"name": "b"}]}}
    entries = [{"name": name, "resourceClaimTemplateName": "share"} for name in ("a", "b")]
    pod = {"metadata": {}, "spec": {"containers": [container], "resourceClaims": entries}}
    answer = replicas[0].ask("/validate", pod, ("", "v1", "Pod"), namespace="team")
    assert "container main has an MPS share" in answer["status"]["message"]
    answer = replicas[0].ask("/validate", pod, ("", "v1", "Pod"), namespace="elsewhere")
    assert answer["allowed"]


@pytest.mark.slow
def test_another_keeps_the_certificate_when_the_leader_goes(tmp_path: Path) -> None:
    with api_server.ApiServer() as api, contextlib.ExitStack() as running:
        prepared(api)
        webhooks = running.enter_context(two(api, tmp_path))
        leader = next(
            webhook for webhook in webhooks if "admission_leading 1" in webhook.page("metrics")
        )
        (other,) = (webhook for webhook in webhooks if webhook is not leader)
        leader.process.send_signal(signal.SIGTERM)
        assert leader.process.wait(15) == 0
        previous = believed(api)
        api.remove(gvr.SECRETS, *SECRET)
        waiting.until(lambda: api.read(gvr.SECRETS, *SECRET), within_s=60)
        assert believed(api) == previous
        answer = other.ask("/mutate", gpu_pod(), ("", "v1", "Pod"), namespace="team")
        assert answer["allowed"]

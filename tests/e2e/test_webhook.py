"""The admission webhook as installed: what users see of it, its certificates, and life without it.

It scales the webhook away and turns its certificates, so it has a cluster with the driver's pods
to itself.
"""

import base64
import copy
import datetime as dt
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from driver import errors
from driver.kube import client, gvr
from driver.webhook.tls import ca
from hack.chart import helm
from tests.e2e import playground, release

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
cluster, field = release.cluster, release.field
Raw = dict[str, Any]
GROUP = "resource.ration.dev/v1alpha1"
NAME, SECRET = "ration-admission", "ration-admission-tls"
REQUESTS, PACE_S = 1000, 0.05
UNSAFE: dict[str, tuple[Raw, str]] = {
    "unknown field": ({"kind": "GpuConfig", "shape": "round"}, "shape: is not a field"),
    "more than there is": (
        {
            "kind": "GpuConfig",
            "sharing": {"strategy": "MPS", "mps": {"activeThreadPercentage": 500}},
        },
        "activeThreadPercentage",
    ),
    "not allowed to claims": ({"kind": "GpuConfig", "crossNamespace": True}, "crossNamespace"),
}


def kubectl(field: playground.Playground, *arguments: str, manifest: Raw) -> tuple[int, str]:
    """Its exit code, and all that a user sees."""
    program = str(release.WHERE.program("kubectl"))
    values = (f"--kubeconfig={field.cluster.kubeconfig}", "-n", field.namespace)
    done = subprocess.run(
        (program, *values, *arguments, "-f", "-"),
        input=yaml.safe_dump(manifest),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "HOME": str(release.WHERE.home)},
    )
    return done.returncode, done.stdout + done.stderr


def configured(name: str, parameters: Raw, **exactly: Any) -> Raw:
    """A claim with configuration of ours."""
    claim = playground.a_claim(name, **exactly)
    opaque = {"driver": "gpu.ration.dev", "parameters": {"apiVersion": GROUP, **parameters}}
    claim["spec"]["devices"]["config"] = [{"opaque": opaque}]
    return claim


# What users see.


def test_kubectl_shows_where_a_configuration_is_wrong_and_what_would_be_right(
    field: playground.Playground,
) -> None:
    odd = configured("odd", {"kind": "GpuConfig", "sharin": {}})
    code, message = kubectl(field, "create", manifest=odd)
    assert code != 0
    assert "spec.devices.config[0].opaque.parameters.sharin: is not a field" in message
    assert "sharing" in message.replace("sharin:", "")
    assert field.claims() == []


def test_kubectl_warns_of_time_slicing_without_a_memory_limit(
    field: playground.Playground,
) -> None:
    template = playground.a_template("turns", deviceClassName="gpu-timeslice.ration.dev")
    field.create(template)
    code, message = kubectl(field, "create", manifest=release.a_pod("pod", template="turns"))
    assert code == 0
    assert re.search(r"Warning: .* a time-sliced share without an amount of memory", message)


# A namespace of pods that were written for a device plugin.

WANTED = {
    "one": ({"nvidia.com/gpu": "1"}, 1),
    "two": ({"nvidia.com/gpu": "2"}, 2),
    "shared-a": ({"nvidia.com/gpu.shared": "1"}, 1),
    "shared-b": ({"nvidia.com/gpu.shared": "1"}, 1),
    "mig": ({"nvidia.com/mig-1g.10gb": "1"}, 1),
}


def test_a_namespace_of_pods_for_a_device_plugin_runs_unchanged(
    field: playground.Playground,
) -> None:
    for name, (limits, _) in WANTED.items():
        pod = release.a_pod(name, command=playground.LIST_GPUS)
        del pod["spec"]["resourceClaims"]
        pod["spec"]["containers"][0]["resources"] = {"limits": limits}
        field.create(pod)
    for name, (limits, count) in WANTED.items():
        running = field.running(name, within_s=120)
        assert len(field.uuids(name)) == count, limits
        assert running["spec"]["containers"][0]["resources"].get("limits", {}) == {}
    whole = [uuid for name in ("one", "two") for uuid in field.uuids(name)]
    assert len(set(whole)) == 3
    assert "MIG-" in field.cluster.kubectl("logs", "-n", field.namespace, "mig")


# Certificates.


def bundle(field: playground.Playground) -> ca.Bundle:
    secret = field.kube.get(gvr.SECRETS, SECRET, helm.NAMESPACE)
    return ca.parse_data({key: base64.b64decode(entry) for key, entry in secret["data"].items()})


def announce(field: playground.Playground, trusted: bytes) -> None:
    """Have the API server believe authorities, as the hour before one signs does."""
    text = base64.b64encode(trusted).decode()
    for kind in (gvr.VALIDATING_WEBHOOKS, gvr.MUTATING_WEBHOOKS):
        names = [webhook["name"] for webhook in field.kube.get(kind, NAME)["webhooks"]]
        body = {"webhooks": [{"name": name, "clientConfig": {"caBundle": text}} for name in names]}
        field.kube.patch(kind, NAME, body, kind=client.PatchType.STRATEGIC)


def put(field: playground.Playground, expected: ca.Bundle) -> None:
    data = {key: base64.b64encode(data).decode() for key, data in ca.render_data(expected).items()}
    field.kube.patch(gvr.SECRETS, SECRET, {"data": data}, namespace=helm.NAMESPACE)


def next_authority(previous: ca.Bundle) -> ca.Bundle:
    """The same bundle with an authority that was announced two hours ago: it is to sign now."""
    then = dt.datetime.now(dt.UTC) - 2 * ca.ANNOUNCED
    renewed = ca.ensure_bundle(None, [NAME], then)
    return ca.Bundle(previous.authority, previous.leaf, following=renewed.authority)


def refused(field: playground.Playground, number: int) -> bool:
    """Return whether the webhook refuses what it must; it is asked on behalf of a dry run."""
    odd = configured(f"odd-{number}", {"kind": "GpuConfig", "shape": "round"})
    try:
        field.kube.create(gvr.RESOURCE_CLAIMS, odd, field.namespace)
    except errors.ApiError as error:
        return "shape: is not a field" in str(error)
    return False


def test_a_thousand_requests_are_answered_while_authority_and_certificate_change(
    field: playground.Playground,
) -> None:
    previous = bundle(field)
    failed: list[int] = []
    begun = time.monotonic()
    for number in range(REQUESTS):
        if number == REQUESTS // 10:
            announced = next_authority(previous)
            announce(field, announced.trusted)
        if number == REQUESTS // 5:
            put(field, announced)
        if not refused(field, number):
            failed.append(number)
        time.sleep(max(0.0, begun + number * PACE_S - time.monotonic()))
    after = bundle(field)
    took_s = time.monotonic() - begun
    sys.stdout.write(f"{REQUESTS} requests in {took_s:.0f} s, {len(failed)} failed\n")
    assert after.authority == announced.following
    assert after.leaf != previous.leaf
    assert after.former == previous.authority.certificate
    assert failed == []
    for _ in range(20):  # by now every replica has read the Secret again
        assert refused(field, REQUESTS)


# Without it.


@pytest.fixture
def without(field: playground.Playground) -> Iterator[playground.Playground]:
    """The webhook is away."""
    scale = ("scale", "deployment", NAME, "-n", helm.NAMESPACE)
    previous = json.loads(
        field.cluster.kubectl("get", "deployment", NAME, "-n", helm.NAMESPACE, "--output=json")
    )["spec"]["replicas"]
    field.cluster.kubectl(*scale, "--replicas=0")
    query = ("get", "pods", "-n", helm.NAMESPACE, "-l", "app.kubernetes.io/component=admission")
    playground.until(
        lambda: not field.cluster.kubectl(*query, "--output=name").split(),
        60,
        "the webhook is gone",
    )
    try:
        yield field
    finally:
        field.cluster.kubectl(*scale, f"--replicas={previous}")
        values = ("-n", helm.NAMESPACE, "--timeout=90s")
        field.cluster.kubectl("rollout", "status", f"deployment/{NAME}", *values)


def given(field: playground.Playground, name: str, pod: Raw, like: Raw) -> None:
    """Allocate a claim for a pod as another one was, by hand: no allocator reads it."""
    claim = field.claim(name)
    allocation = copy.deepcopy(like)
    wrong = claim["spec"]["devices"]["config"][0]["opaque"]
    allocation["devices"]["config"] = [{"source": "FromClaim", "opaque": wrong}]
    user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    body = {"status": {"allocation": allocation, "reservedFor": [user]}}
    field.kube.patch(
        gvr.RESOURCE_CLAIMS, name, body, namespace=field.namespace, subresource="status"
    )


@pytest.mark.parametrize("case", UNSAFE)
def test_without_the_webhook_nothing_unsafe_passes_the_node(
    without: playground.Playground, case: str
) -> None:
    field, (parameters, words) = without, UNSAFE[case]
    field.create(playground.a_claim("right"), release.a_pod("first", claims=("right",)))
    node = field.running("first")["spec"]["nodeName"]
    like = field.claim("right")["status"]["allocation"]
    field.delete_pod("first")

    field.create(configured("wrong", parameters))
    field.create(release.a_pod("pod", claims=("wrong",), nodeSelector=playground.on(node)))
    (note,) = field.told("wrong", "NoFit")
    assert words in note
    given(field, "wrong", field.pod("pod"), like)
    assert words in field.told("pod", "FailedPrepareDynamicResources", 60)[0]
    assert field.pod("pod")["status"]["phase"] == "Pending"


def test_without_the_webhook_a_pod_that_would_wait_for_ever_is_refused(
    without: playground.Playground,
) -> None:
    pod = release.a_pod("pod")
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    code, message = kubectl(without, "create", manifest=pod)
    assert code != 0
    assert re.search(r"failed calling webhook .*convert\.admission\.ration\.dev", message)

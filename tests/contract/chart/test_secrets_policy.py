"""The policy on Secrets that the webhook makes, asked without an API server."""

import functools
from typing import Any

import pytest

from tests.contract.chart import judging, rendered

pytestmark = rendered.BUILDS_HELM
NAMESPACE = "ration-system"
WEBHOOK = f"system:serviceaccount:{NAMESPACE}:ration-admission"
OWN = "ration-admission-tls"
NO_OTHER = "the webhook writes no other Secret than that of its own certificate"
POLICY = "ration-secrets"


@functools.cache
def policy() -> rendered.Object:
    return rendered.one(rendered.objects(), "ValidatingAdmissionPolicy", POLICY)


def a_secret(name: str = OWN, namespace: str = NAMESPACE, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, **more}


def refused(secret: dict[str, Any], user: str = WEBHOOK, operation: str = "CREATE") -> list[str]:
    namespace = secret["metadata"]["namespace"]
    request = judging.Request(user, operation, secret, namespace=namespace)
    return judging.refusals(policy(), request)


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_the_webhook_writes_the_secret_of_its_certificate(operation: str) -> None:
    assert refused(a_secret(type="Opaque"), operation=operation) == []
    assert refused(a_secret(type="kubernetes.io/tls"), operation=operation) == []
    assert refused(a_secret(), operation=operation) == []


# Covers S-7.
@pytest.mark.parametrize(
    "secret",
    [
        a_secret(type="kubernetes.io/service-account-token"),
        a_secret("other", type="Opaque"),
        a_secret("other", type="kubernetes.io/service-account-token"),
        a_secret(namespace="kube-system", type="Opaque"),
        a_secret(type="bootstrap.kubernetes.io/token"),
    ],
)
def test_it_writes_no_other_and_none_that_becomes_a_token(secret: dict[str, Any]) -> None:
    assert refused(secret) == [NO_OTHER]


def test_other_writers_of_secrets_are_not_checked() -> None:
    assert refused(a_secret("other"), user="system:serviceaccount:default:x") == []


@pytest.mark.parametrize("mode", ["cert-manager", "secret"])
def test_without_the_right_there_is_no_policy(mode: str) -> None:
    values = ("admission.tls.secretName=mine", "admission.tls.caBundle=x")
    flags = rendered.setting(f"admission.tls.mode={mode}", *values)
    names = {
        obj["metadata"]["name"]
        for obj in rendered.objects(*flags)
        if obj["kind"] == "ValidatingAdmissionPolicy"
    }
    assert POLICY not in names
    assert "ration-slices" in names

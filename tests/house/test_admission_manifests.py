"""The webhook's manifests agree with its defaults, and give it the rights that it uses."""

from typing import Any

import pytest
import yaml

from driver.controller.admission import conversion
from driver.controller.admission.config import AdmissionConfig
from tests.house import test_manifests

FOLDER = test_manifests.FOLDER.parent / "admission"
DOCUMENTS: list[dict[str, Any]] = [
    one for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())
]
DEFAULTS = AdmissionConfig()


def of(kind: str) -> dict[str, Any]:
    (found,) = [one for one in DOCUMENTS if one["kind"] == kind]
    return found


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_the_api_server_calls_the_service_that_the_certificate_is_for(kind: str) -> None:
    found = of(kind)
    assert found["metadata"]["name"] == DEFAULTS.configuration
    for one in found["webhooks"]:
        service = one["clientConfig"]["service"]
        assert f"{service['name']}.{service['namespace']}.svc" == DEFAULTS.hosts[0]
        assert service["path"] in {"/validate", "/mutate"}
        assert one["timeoutSeconds"] <= 5


def test_the_service_leads_to_the_webhooks_port() -> None:
    (port,) = of("Service")["spec"]["ports"]
    (container,) = of("Deployment")["spec"]["template"]["spec"]["containers"]
    named = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert named[port["targetPort"]] == DEFAULTS.webhook_host_port[1]


def test_every_resource_that_is_converted_is_asked_about() -> None:
    (webhook,) = of("MutatingWebhookConfiguration")["webhooks"]
    (condition,) = webhook["matchConditions"]
    for resource in (conversion.GPU, conversion.SHARED, conversion.MIG):
        assert f'"{resource}"' in condition["expression"]


def test_secrets_and_leases_are_its_own_alone() -> None:
    rules = of("Role")["rules"]
    for kind, name in (("secrets", DEFAULTS.secret), ("leases", "ration-admission")):
        mine = [one for one in rules if one["resources"] == [kind]]
        assert [one.get("resourceNames") for one in mine] == [None, [name]]
        assert mine[0]["verbs"] == ["create"]
    resources = {one for rule in of("ClusterRole")["rules"] for one in rule["resources"]}
    assert "secrets" not in resources
    assert "resourceclaims/status" not in resources

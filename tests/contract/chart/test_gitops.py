"""Tests of the chart under Argo CD and Flux, which render it repeatedly, far from the cluster."""

import json
from typing import Any

import pytest
import yaml

from hack.chart import helm
from tests.contract.chart import rendered

pytestmark = rendered.BUILDS_HELM
EXAMPLES = helm.ROOT / "examples" / "gitops"
CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "DeviceClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
}
HOOKS_OF_ARGO = {"pre-install", "pre-upgrade", "post-install", "post-upgrade", "post-delete"}
"""Helm's hooks that every supported Argo CD runs at the same moment."""


def hooks(objects: list[Any]) -> dict[str, set[str]]:
    result: dict[str, set[str]] = {}
    for each in objects:
        annotations = each["metadata"].get("annotations") or {}
        if "helm.sh/hook" in annotations:
            name = f"{each['kind']}/{each['metadata']['name']}"
            result[name] = set(annotations["helm.sh/hook"].split(","))
    return result


def application() -> dict[str, Any]:
    (obj,) = helm.objects((EXAMPLES / "argocd.yaml").read_text())
    return dict(obj)


def flux() -> dict[str, Any]:
    objects = helm.objects((EXAMPLES / "flux.yaml").read_text())
    (each,) = (each for each in objects if each["kind"] == "HelmRelease")
    return dict(each)


def of_the_examples() -> list[Any]:
    """The chart with the values of the example for Argo CD."""
    values = application()["spec"]["sources"][0]["helm"]["valuesObject"]
    flags = [f"--set-json={key}={json.dumps(value)}" for key, value in values.items()]
    return helm.objects(helm.template(*flags, hooks=True))


def test_it_renders_to_the_same_each_time() -> None:
    assert helm.template(hooks=True) == helm.template(hooks=True)


def test_each_object_says_in_which_namespace_it_belongs() -> None:
    nowhere = {
        f"{each['kind']}/{each['metadata']['name']}"
        for each in rendered.objects()
        if each["kind"] not in CLUSTER_SCOPED and "namespace" not in each["metadata"]
    }
    assert nowhere == set()


def test_with_the_example_values_argo_runs_every_hook() -> None:
    left = {
        name: events - HOOKS_OF_ARGO
        for name, events in hooks(of_the_examples()).items()
        if events - HOOKS_OF_ARGO
    }
    assert left == {}


def test_the_default_hooks_do_not_run_in_every_argo() -> None:
    events = set().union(*hooks(helm.objects(helm.template(hooks=True))).values())
    assert events - HOOKS_OF_ARGO == {"pre-delete", "test"}


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_fields_written_by_the_webhook_are_no_diff_to_argo(kind: str) -> None:
    (rule,) = (rule for rule in application()["spec"]["ignoreDifferences"] if rule["kind"] == kind)
    assert rule["jqPathExpressions"] == [".webhooks[].clientConfig.caBundle"]
    rendered_by_us = [each for each in rendered.objects() if each["kind"] == kind]
    assert rendered_by_us
    assert not [
        hook
        for each in rendered_by_us
        for hook in each["webhooks"]
        if "caBundle" in hook["clientConfig"]
    ]


def test_fields_written_by_the_webhook_are_no_diff_to_flux() -> None:
    ignored = flux()["spec"]["driftDetection"]["ignore"]
    webhooks = {rule["target"]["kind"] for rule in ignored}
    assert webhooks == {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}


@pytest.mark.parametrize("name", ["argocd.yaml", "flux.yaml"])
def test_the_examples_take_the_chart_of_this_version(name: str) -> None:
    version = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())["version"]
    assert version in (EXAMPLES / name).read_text()

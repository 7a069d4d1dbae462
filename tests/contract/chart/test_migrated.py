"""The values of `ration migrate`: the chart takes them, and renders what the plan says."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from driver.cli.migrate import render
from driver.resources import extended_resources
from driver.webhook.config import AdmissionConfig
from tests.contract.chart import rendered
from tests.support import migrate_cases

pytestmark = rendered.BUILDS_HELM
NEW = "1.37"


@pytest.mark.parametrize("case", migrate_cases.CASES, ids=lambda case: case.name)
def test_the_chart_installs_what_the_plan_says(case: migrate_cases.Case, tmp_path: Path) -> None:
    plan = case.plan()
    values = tmp_path / "values.yaml"
    values.write_text(render.plan_files(plan)["values.yaml"])
    objects = rendered.objects(f"--values={values}", f"--kube-version={NEW}.1")
    rendered.check(objects, NEW)

    configmap = rendered.one(objects, "ConfigMap", "ration-kubeletplugin-offerings")
    document = yaml.safe_load(configmap["data"]["offerings.yaml"])
    assert document == render.offerings_document(plan)

    classes: dict[str, Any] = {
        x["metadata"]["name"]: x["spec"] for x in objects if x["kind"] == "DeviceClass"
    }
    for manifest in render.manifests(plan):
        kubernetes_validate.validate(dict(manifest), NEW, strict=True)
        name = manifest["metadata"]["name"]  # type: ignore[index]
        assert name not in classes
        classes[name] = manifest["spec"]
    for replacement in plan.replacements:
        extended = classes[replacement.name].get("extendedResourceName")
        assert extended == (replacement.resource if replacement.extended else None)

    for name in ("ration-kubeletplugin", "ration-mps"):
        spec = rendered.one(objects, "DaemonSet", name)["spec"]["template"]["spec"]
        assert spec["nodeSelector"] == {"ration.dev/taken-over": "true"}
    deployments = {x["metadata"]["name"] for x in objects if x["kind"] == "Deployment"}
    assert ("ration-controller" in deployments) is not plan.scheduler


@pytest.mark.parametrize("case", migrate_cases.CASES, ids=lambda case: case.name)
def test_the_webhook_is_told_the_plans_classes(case: migrate_cases.Case, tmp_path: Path) -> None:
    plan = case.plan(scheduler=False)
    values = tmp_path / "values.yaml"
    values.write_text(render.plan_files(plan)["values.yaml"])
    webhook = rendered.one(rendered.objects(f"--values={values}"), "Deployment", "ration-admission")
    (container,) = webhook["spec"]["template"]["spec"]["containers"]
    inputs = [argument for argument in container["args"] if "$(" not in argument]
    settings = AdmissionConfig.read(inputs)
    named = {
        extended_resources.GPU: settings.whole_class,
        extended_resources.SHARED: settings.shared_class,
    }
    for replacement in plan.replacements:
        if not replacement.left:
            assert replacement.name == named.get(replacement.resource, settings.mig_class)

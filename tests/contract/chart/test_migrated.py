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
    made = case.plan()
    values = tmp_path / "values.yaml"
    values.write_text(render.plan_files(made)["values.yaml"])
    found = rendered.objects(f"--values={values}", f"--kube-version={NEW}.1")
    rendered.check(found, NEW)

    configmap = rendered.one(found, "ConfigMap", "ration-kubeletplugin-offerings")
    document = yaml.safe_load(configmap["data"]["offerings.yaml"])
    assert document == render.offerings_document(made)

    classes: dict[str, Any] = {
        x["metadata"]["name"]: x["spec"] for x in found if x["kind"] == "DeviceClass"
    }
    for manifest in render.manifests(made):
        kubernetes_validate.validate(dict(manifest), NEW, strict=True)
        name = manifest["metadata"]["name"]  # type: ignore[index]
        assert name not in classes
        classes[name] = manifest["spec"]
    for one in made.replacements:
        extended = classes[one.name].get("extendedResourceName")
        assert extended == (one.resource if one.extended else None)

    for name in ("ration-kubeletplugin", "ration-mps"):
        spec = rendered.one(found, "DaemonSet", name)["spec"]["template"]["spec"]
        assert spec["nodeSelector"] == {"ration.dev/taken-over": "true"}
    deployments = {x["metadata"]["name"] for x in found if x["kind"] == "Deployment"}
    assert ("ration-controller" in deployments) is not made.scheduler


@pytest.mark.parametrize("case", migrate_cases.CASES, ids=lambda case: case.name)
def test_the_webhook_is_told_the_plans_classes(case: migrate_cases.Case, tmp_path: Path) -> None:
    made = case.plan(scheduler=False)
    values = tmp_path / "values.yaml"
    values.write_text(render.plan_files(made)["values.yaml"])
    webhook = rendered.one(rendered.objects(f"--values={values}"), "Deployment", "ration-admission")
    (container,) = webhook["spec"]["template"]["spec"]["containers"]
    given = [one for one in container["args"] if "$(" not in one]
    settings = AdmissionConfig.read(given)
    named = {
        extended_resources.GPU: settings.whole_class,
        extended_resources.SHARED: settings.shared_class,
    }
    for one in made.replacements:
        if not one.left:
            assert one.name == named.get(one.resource, settings.mig_class)

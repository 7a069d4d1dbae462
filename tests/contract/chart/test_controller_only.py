"""The chart without the kubelet plugin: a controller for the devices of other drivers."""

import json
from typing import Any

import pytest

from driver.controller.config import ControllerConfig
from driver.webhook.config import AdmissionConfig
from hack.chart import helm, rights_page, why
from hack.cluster import shell
from tests.contract.chart import rendered, rendered_workloads

pytestmark = rendered.BUILDS_HELM
OFF = "kubeletPlugin.enabled=false"
DRIVER = "controller.managedDrivers[0].name=gpu.example.com"
ONLY = rendered.setting(OFF, DRIVER)
EVERYTHING = (
    f"--values={rendered.EVERYTHING}",
    *rendered.setting(OFF, "allocator=controller", "controller.nodes.enabled=false"),
)
POLICIES = {
    "ration-fence",
    "ration-fencerules",
    "ration-pods",
    "ration-podstatus",
    "ration-reservations",
    "ration-taintrules",
    "ration-tolerations",
}
INSTALLED = {
    "ClusterRole": {"ration-controller", "ration-leave"},
    "ClusterRoleBinding": {"ration-controller", "ration-leave"},
    "ConfigMap": {"ration-controller-managed-drivers"},
    "CustomResourceDefinition": {"queues.ration.dev", "reservations.ration.dev"},
    "Deployment": {"ration-controller"},
    "Job": {"ration-leave-stop", "ration-leave-sweep"},
    "Lease": {"ration-controller"},
    "MutatingAdmissionPolicy": {"ration-gate"},
    "MutatingAdmissionPolicyBinding": {"ration-gate"},
    "PodDisruptionBudget": {"ration-controller"},
    "Role": {"ration-controller", "ration-leave"},
    "RoleBinding": {"ration-controller", "ration-leave"},
    "ServiceAccount": {"ration-controller", "ration-leave"},
    "ValidatingAdmissionPolicy": POLICIES,
    "ValidatingAdmissionPolicyBinding": POLICIES,
}


def by_kind(objects: list[rendered.Object]) -> dict[str, set[str]]:
    kinds: dict[str, set[str]] = {}
    for obj in objects:
        kinds.setdefault(obj["kind"], set()).add(obj["metadata"]["name"])
    return kinds


@pytest.fixture(params=[ONLY, EVERYTHING], ids=["usual", "everything"])
def objects(request: pytest.FixtureRequest) -> list[rendered.Object]:
    return rendered.objects(rendered.NEWEST, *request.param)


def test_only_the_controller_and_what_it_needs_is_installed() -> None:
    assert by_kind(rendered.objects(rendered.NEWEST, *ONLY)) == INSTALLED


def test_the_webhook_is_there_where_it_is_to_convert_and_has_what_that_takes() -> None:
    objects = rendered.objects(
        rendered.NEWEST, *ONLY, *rendered.setting("admission.convert=on", "admission.gate=true")
    )
    hooks = [
        hook["name"]
        for obj in objects
        if obj["kind"].endswith("WebhookConfiguration")
        for hook in obj["webhooks"]
    ]
    assert sorted(hooks) == [
        "configuration.admission.ration.dev",
        "convert-classes.admission.ration.dev",
    ]
    named = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == "Deployment"}
    (container,) = named["ration-admission"]["spec"]["template"]["spec"]["containers"]
    config = AdmissionConfig.read([arg for arg in container["args"] if "$(" not in arg])
    assert (config.whole_class, config.shared_class, config.mig_class) == ("", "", "")
    roles = [obj for obj in objects if obj["kind"] in {"Role", "ClusterRole"}]
    text = json.dumps([obj for obj in roles if obj["metadata"]["name"] == "ration-admission"])
    assert '"resourceclaims"' not in text
    assert '"ration-controller"' not in text


def test_every_switch_adds_only_what_the_controller_has() -> None:
    present = by_kind(rendered.objects(rendered.NEWEST, *EVERYTHING))
    assert present.keys() - INSTALLED.keys() == {
        "NetworkPolicy",
        "PrometheusRule",
        "ResourceQuota",
        "Service",
        "ServiceMonitor",
    }
    assert present["Deployment"] == present["NetworkPolicy"] == {"gpus-controller"}
    assert present["Service"] == {"gpus-controller", "gpus-metrics"}
    assert present["RoleBinding"] == {"gpus-controller", "gpus-leave"}
    assert present["ConfigMap"] == {
        "gpus-controller-managed-drivers",
        "gpus-controller-workload-mix",
        "gpus-dashboards",
    }


@pytest.mark.parametrize("line", rendered.LINES)
def test_kubernetes_takes_every_object(objects: list[rendered.Object], line: str) -> None:
    rendered.check(objects, line)


def test_no_object_mentions_what_does_not_run(objects: list[rendered.Object]) -> None:
    not_texts = {"CustomResourceDefinition", "ConfigMap", "PrometheusRule"}
    text = json.dumps([obj for obj in objects if obj["kind"] not in not_texts])
    for component in ("kubeletplugin", "-mps", "-admission", "-clearing", "privileged"):
        assert component not in text


def test_alerts_are_those_of_what_the_controller_measures() -> None:
    (rule,) = [x for x in rendered.objects(*EVERYTHING) if x["kind"] == "PrometheusRule"]
    (group,) = rule["spec"]["groups"]
    assert [alert["alert"] for alert in group["rules"]] == [
        "RationManagedControllerDown",
        "RationNoLeader",
        "RationDeciderFaults",
        "RationCachesStale",
        "RationQueueStarving",
    ]
    for alert in group["rules"]:
        assert alert["annotations"]["runbook_url"].startswith("https://docs.example.org/ration/")


def test_the_dashboard_of_shares_is_left_out() -> None:
    boards = rendered.one(rendered.objects(*EVERYTHING), "ConfigMap", "gpus-dashboards")
    assert set(boards["data"]) == {
        "ration-fleet.json",
        "ration-internals.json",
        "ration-queues.json",
    }


def test_the_controller_labels_no_nodes_and_reads_the_drivers() -> None:
    args = rendered_workloads.container(rendered.objects(*EVERYTHING), "controller")["args"]
    config = ControllerConfig.read(args)
    assert config.managed_drivers is not None
    assert not config.label_nodes


def rules(*flags: str) -> frozenset[why.Rule]:
    return rights_page.rendered(rendered.objects(*flags))


def test_rights_are_those_of_the_controller_and_of_uninstalling() -> None:
    usual = rules(*rendered.setting(DRIVER))
    only = rules(*ONLY)
    assert only < usual
    assert {(rule.component, rule.resource) for rule in usual - only} == {
        *((rule.component, rule.resource) for rule in usual if rule.component in NOT_RUN),
        ("controller", "nodes/status"),
        ("leave", "daemonsets"),
        ("leave", "leases"),
        ("leave", "secrets"),
    }
    assert {rule.component for rule in only} == {"controller", "leave"}


NOT_RUN = ("kubeletplugin", "admission")


def test_the_controller_writes_no_node_and_status_of_listed_drivers_alone() -> None:
    objects = rendered.objects(*ONLY, "--set=controller.labelNodes=true")
    role = rendered.one(objects, "ClusterRole", "ration-controller")
    nodes = [rule for rule in role["rules"] if "nodes" in rule["resources"]]
    assert [rule["verbs"] for rule in nodes] == [["list", "watch"]]
    (named,) = [rule for rule in role["rules"] if rule["resources"] == ["resourceclaims/driver"]]
    assert named["resourceNames"] == ["gpu.example.com"]


def test_uninstalling_waits_for_no_node_and_knows_the_drivers() -> None:
    jobs: dict[str, Any] = {}
    for obj in rendered.objects(*ONLY):
        if obj["kind"] == "Job":
            (container,) = obj["spec"]["template"]["spec"]["containers"]
            jobs[container["args"][0]] = container["args"]
    assert set(jobs) == {"stop", "sweep"}
    assert "--managed-driver=gpu.example.com" in jobs["stop"]
    assert not [word for word in jobs["stop"] if word.startswith("--plugin")]
    assert "--allocator-rules" in jobs["sweep"]
    assert not [word for word in jobs["sweep"] if word.startswith(("--lease", "--secret"))]


def notes(*flags: str) -> str:
    """Return what Helm prints after an installation, without a cluster."""
    words = ("install", helm.RELEASE, str(helm.CHART), "--dry-run=client")
    output = shell.run((str(helm.program()), *words, f"--namespace={helm.NAMESPACE}", *flags))
    return output.partition("NOTES:")[2]


def test_notes_name_the_rules_and_nothing_that_is_not_there() -> None:
    text = notes(*ONLY)
    assert "devices of gpu.example.com, which their own drivers publish" in text
    assert "kubectl get devicetaintrules -l ration.dev/allocator-rule=true" in text
    assert "ration doctor --namespace ration-system" in text
    for word in ("kubeletplugin", "resourceslices", "helm test", "gpu.ration.dev", "MPS"):
        assert word not in text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            (OFF, DRIVER, "controller.enabled=false"),
            "kubeletPlugin.enabled and controller.enabled are false, so nothing would run",
        ),
        ((OFF,), "controller.managedDrivers is empty, so the controller would have no devices"),
        (
            (OFF, DRIVER, "allocator=scheduler"),
            "allocator is scheduler, so the controller would have no devices",
        ),
        (
            (OFF, DRIVER, "controller.nodes.enabled=true"),
            "requests nodes for devices that Ration's kubelet plugin publishes",
        ),
    ],
)
def test_values_that_contradict_the_missing_plugin_are_refused(
    values: tuple[str, ...], words: str
) -> None:
    assert words in rendered.refusal(*rendered.setting(*values))


def test_values_of_what_does_not_run_are_no_contradiction() -> None:
    assert rendered.objects(*ONLY, "--set=mps.enabled=false")

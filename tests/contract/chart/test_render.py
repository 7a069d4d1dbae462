import pytest

from hack.chart import helm
from hack.cluster import shell
from tests.contract.chart import rendered
from tests.contract.chart.rendered import setting

pytestmark = rendered.BUILDS_HELM

SWITCHES = (
    ("controller.enabled=false", "allocator=scheduler"),
    ("mps.enabled=false", "deviceClasses.mps.enabled=false"),
    ("controller.nodes.enabled=true",),
    ("policies.enabled=false",),
    ("policies.gate=false",),
    ("networkPolicy.enabled=true",),
    ("serviceMonitor.enabled=true",),
    ("prometheusRule.enabled=true",),
    ("dashboards.enabled=true",),
    ("openshift.privileged=true",),
    ("criticalPodsQuota.enabled=true",),
    ("tests.enabled=false",),
    ("uninstall.enabled=false",),
    ("crds.install=false",),
    ("crds.keep=false",),
    ("controller.podDisruptionBudget.enabled=false",),
    ("deviceClasses.gpu.enabled=false",),
    ("deviceClasses.timeSlicing.enabled=false",),
    ("deviceClasses.mig.enabled=false",),
    ("admission.enabled=false",),
    ("admission.convert=off",),
    ("admission.gate=false",),
    ("admission.tls.mode=cert-manager",),
    ("admission.tls.mode=secret", "admission.tls.secretName=a", "admission.tls.caBundle=PEM"),
    ("mps.serviceAccount.create=false", "mps.serviceAccount.name=there"),
    ("driverName=gpu.nvidia.com",),
    ("driverName=gpus",),
)


@pytest.mark.parametrize("line", rendered.LINES)
@pytest.mark.parametrize(
    "flags",
    [
        (),
        (f"--values={rendered.EVERYTHING}",),
        *((f"--values={path}",) for path in rendered.PRESETS),
        *(setting(*entry) for entry in SWITCHES),
    ],
    ids=[
        "default",
        "everything",
        *(path.stem for path in rendered.PRESETS),
        *(entry[0] for entry in SWITCHES),
    ],
)
def test_kubernetes_takes_every_object(flags: tuple[str, ...], line: str) -> None:
    objects = rendered.objects(f"--kube-version={line}.4", *flags)
    assert len(objects) > 10
    rendered.check(objects, line)
    names = [(x["kind"], x["metadata"].get("namespace"), x["metadata"]["name"]) for x in objects]
    assert len(set(names)) == len(names)


def test_the_chart_has_no_lint() -> None:
    for file in (helm.CHART / "values.yaml", rendered.EVERYTHING, *rendered.PRESETS):
        flags = ("--strict", f"--values={file}")
        shell.run((str(helm.program()), "lint", str(helm.CHART), *flags))


def test_the_default_render_is_the_one_on_file() -> None:
    assert helm.template(hooks=True) == helm.SNAPSHOT.read_text(), "make chart-snapshot"


def test_the_one_file_install_holds_the_namespace_first_and_no_test() -> None:
    objects = helm.objects(helm.install_yaml())
    assert [x["kind"] for x in objects].index("Namespace") == 0
    assert objects[0]["metadata"]["name"] == "ration-system"
    assert "Pod" not in rendered.kinds(objects)
    assert len(objects) == len(helm.objects(helm.template())) + 1


OF_WEBHOOK = ("ration-webhooks", "ration-secrets")
"""Its policies, whose names do not say so."""


def test_the_local_cluster_gets_all_but_the_pods() -> None:
    without_workloads = helm.without_workloads()
    whole = helm.objects(helm.template())
    assert without_workloads[0]["kind"] == "Namespace"
    for entry in whole:  # without a webhook no class has the label that it converts by
        if entry["kind"] == "DeviceClass":
            del entry["metadata"]["labels"]["ration.dev/convert"]
    left_out = [x for x in whole if x not in without_workloads]
    webhooks = [x for x in left_out if "admission" in x["metadata"]["name"]]
    webhooks += [x for x in left_out if x["metadata"]["name"] in OF_WEBHOOK]
    processes = {x["kind"] for x in left_out if x not in webhooks}
    assert processes == {"Deployment", "DaemonSet", "PodDisruptionBudget"}
    assert not [x for x in without_workloads if "admission" in x["metadata"]["name"]]
    assert len(without_workloads) == len(whole) - len(left_out) + 1


@pytest.mark.parametrize(("kubernetes", "taken"), [("1.33.9", False), ("1.34.0", True)])
def test_a_cluster_without_the_api_is_refused(kubernetes: str, *, taken: bool) -> None:
    flags = f"--kube-version={kubernetes}"
    if taken:
        assert rendered.objects(flags)
    else:
        assert "requires kubeVersion: >=1.34.0-0" in rendered.refusal(flags)


@pytest.mark.parametrize(
    ("switch", "kinds"),
    [
        ("controller.nodes.enabled=true", {"ConfigMap", "PriorityClass"}),
        ("networkPolicy.enabled=true", {"NetworkPolicy"}),
        ("serviceMonitor.enabled=true", {"ServiceMonitor"}),
        ("prometheusRule.enabled=true", {"PrometheusRule"}),
        ("admission.tls.mode=cert-manager", {"Certificate", "Issuer"}),
        ("criticalPodsQuota.enabled=true", {"ResourceQuota"}),
    ],
)
def test_a_switch_that_is_off_by_default_adds_its_objects(switch: str, kinds: set[str]) -> None:
    previous, after = (rendered.kinds(rendered.objects(*flags)) for flags in ((), setting(switch)))
    assert after - previous == kinds


@pytest.mark.parametrize(
    ("switch", "kinds"),
    [
        ("policies.enabled=false", {"ValidatingAdmissionPolicy"}),
        ("tests.enabled=false", {"Pod", "ResourceClaimTemplate"}),
        ("uninstall.enabled=false", {"Job"}),
        ("crds.install=false", {"CustomResourceDefinition"}),
        (
            "admission.enabled=false",
            {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Service"},
        ),
    ],
)
def test_a_switch_that_is_on_by_default_takes_its_objects_away(
    switch: str, kinds: set[str]
) -> None:
    previous, after = (rendered.kinds(rendered.objects(*flags)) for flags in ((), setting(switch)))
    assert kinds <= previous - after


CONVERT, GATE = "convert.admission.ration.dev", "gate.admission.ration.dev"
CLASSES = "convert-classes.admission.ration.dev"


@pytest.mark.parametrize(
    ("settings", "webhooks"),
    [
        ((), [CONVERT, CLASSES, GATE]),
        (("admission.convert=off",), [GATE]),
        (("allocator=scheduler",), [GATE]),
        (("deviceClasses.mig.enabled=false",), [CLASSES, GATE]),
        (("admission.gate=false",), [CONVERT, CLASSES]),
        (
            ("controller.enabled=false", "allocator=scheduler", "admission.convert=on"),
            [CONVERT, CLASSES],
        ),
        (("admission.gate=false", "admission.convert=off"), []),
    ],
)
def test_pods_are_sent_to_the_webhooks_that_are_switched_on(
    settings: tuple[str, ...], webhooks: list[str]
) -> None:
    objects = rendered.objects(*setting(*settings))
    names = [
        hook["name"]
        for x in objects
        if x["kind"] == "MutatingWebhookConfiguration"
        for hook in x["webhooks"]
    ]
    assert names == webhooks


@pytest.mark.parametrize(
    ("settings", "labels"),
    [((), {"true"}), (("admission.convert=off",), {None}), (("admission.enabled=false",), {None})],
)
def test_classes_have_the_label_where_the_webhook_converts(
    settings: tuple[str, ...], labels: set[str | None]
) -> None:
    classes = [x for x in rendered.objects(*setting(*settings)) if x["kind"] == "DeviceClass"]
    assert {x["metadata"]["labels"].get("ration.dev/convert") for x in classes} == labels


@pytest.mark.parametrize("component", ["controller", "admission"])
def test_without_a_budget_a_drain_may_take_all_replicas(component: str) -> None:
    objects = rendered.objects(*setting(f"{component}.podDisruptionBudget.enabled=false"))
    budgets = [x["metadata"]["name"] for x in objects if x["kind"] == "PodDisruptionBudget"]
    assert len(budgets) == 1
    assert f"ration-{component}" not in budgets


def test_without_the_controller_nothing_of_it_is_there() -> None:
    off = ("controller.enabled=false", "allocator=scheduler", "controller.nodes.enabled=true")
    objects = rendered.objects(*setting(*off))
    assert "PriorityClass" not in rendered.kinds(objects)
    assert "Lease" not in rendered.kinds(objects)
    assert not [x for x in objects if "controller" in x["metadata"]["name"]]
    policies = [x["metadata"]["name"] for x in objects if x["kind"].endswith("Policy")]
    assert policies == ["ration-claims", "ration-secrets", "ration-slices", "ration-webhooks"]

"""Accounts, roles and policies: that each speaks of the others by the names they have."""

import json
from typing import Any

import pytest

from hack.chart import rights_page, why
from tests.contract.chart import rendered

pytestmark = rendered.BUILDS_HELM

RELEASES = [
    ("ration", "ration-system", ()),
    ("blue", "gpus", ()),
    ("a" * 53, "gpus", ()),
    ("ration", "ration-system", (f"--values={rendered.EVERYTHING}",)),
]


ON_DEMAND = {"placeholders", "seenshapes", "fencemade"}
"""Policies of the controller that are there with nodes on demand alone."""
MANAGED = {"fencerules"}
"""Policy of the controller that is there with managed drivers alone."""
OF_WHOM = {
    "claims": "kubeletplugin",
    "fence": "controller",
    "nodes": "controller",
    "pods": "controller",
    "podstatus": "controller",
    "slices": "kubeletplugin",
    "webhooks": "admission",
    "secrets": "admission",
}


@pytest.fixture(params=RELEASES, ids=["usual", "other", "long", "everything"])
def release(request: pytest.FixtureRequest) -> tuple[list[rendered.Object], str]:
    name, namespace, flags = request.param
    return rendered.objects(*flags, release=name, namespace=namespace), namespace


def pods(results: list[rendered.Object]) -> dict[str, str]:
    """The account of each component's pods."""
    return {
        x["metadata"]["labels"]["app.kubernetes.io/component"]: x["spec"]["template"]["spec"][
            "serviceAccountName"
        ]
        for x in results
        if x["kind"] in {"Deployment", "DaemonSet"}
    }


def policies(results: list[rendered.Object]) -> dict[str, Any]:
    """Return the policies by the suffix of their names."""
    return {
        x["metadata"]["name"].rpartition("-")[2]: x
        for x in results
        if x["kind"] == "ValidatingAdmissionPolicy"
    }


@pytest.mark.parametrize("name", ["gate", "finalizers"])
def test_policies_mutate_where_a_controller_allocates_and_kubernetes_can(name: str) -> None:
    def mutating(*flags: str) -> set[str]:
        return {
            obj["kind"]
            for obj in rendered.objects(*flags)
            if obj["metadata"]["name"] == f"ration-{name}"
        }

    both = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    assert mutating("--kube-version=1.36.4") == mutating("--kube-version=1.37.1") == both
    assert mutating("--kube-version=1.35.2") == set()
    for value in (f"policies.{name}=false", "policies.enabled=false"):
        assert mutating(f"--set={value}") == set()
    assert mutating(*rendered.setting("controller.enabled=false", "allocator=scheduler")) == set()


def test_finalizers_are_for_every_class_that_the_chart_makes() -> None:
    results = rendered.objects(rendered.NEWEST, f"--values={rendered.EVERYTHING}")
    (policy,) = (
        obj
        for obj in results
        if obj["kind"] == "MutatingAdmissionPolicy"
        and obj["metadata"]["name"].endswith("-finalizers")
    )
    (condition,) = policy["spec"]["matchConditions"]
    named = {*json.loads(condition["expression"].partition(" in ")[2].partition("]")[0] + "]")}
    assert named == {obj["metadata"]["name"] for obj in results if obj["kind"] == "DeviceClass"}


def test_each_policy_speaks_of_the_account_that_the_pods_have(
    release: tuple[list[rendered.Object], str],
) -> None:
    results, namespace = release
    accounts, present = pods(results), policies(results)
    more = dict.fromkeys((ON_DEMAND | MANAGED) & present.keys(), "controller")
    assert {*more} in (set(), ON_DEMAND | MANAGED)
    for name, component in (OF_WHOM | more).items():
        (condition,) = present[name]["spec"]["matchConditions"]
        user = f"system:serviceaccount:{namespace}:{accounts[component]}"
        assert condition["expression"] == f'request.userInfo.username == "{user}"'
    assert {*OF_WHOM, *more, "reservations", "taintrules", "tolerations"} == set(present)


def test_only_a_controller_that_labels_nodes_may_patch_them() -> None:
    values = ("controller.labelNodes=true", "controller.nodes.enabled=true")
    for flags in ((), *((f"--set={value}",) for value in values)):
        objects = rendered.objects(*flags)
        rules = rendered.one(objects, "ClusterRole", "ration-controller")["rules"]
        patches = any(r["resources"] == ["nodes"] and "patch" in r["verbs"] for r in rules)
        assert patches == bool(flags)


def test_each_policy_is_in_force(release: tuple[list[rendered.Object], str]) -> None:
    results, _ = release
    bindings = {
        x["spec"]["policyName"]: x["spec"]["validationActions"]
        for x in results
        if x["kind"] == "ValidatingAdmissionPolicyBinding"
    }
    names = {x["metadata"]["name"] for x in policies(results).values()}
    assert bindings == {name: ["Deny"] for name in names}


def test_parameters_of_a_policy_are_installed_before_it(
    release: tuple[list[rendered.Object], str],
) -> None:
    results, _ = release
    position = {
        (x["kind"], x["metadata"].get("namespace"), x["metadata"]["name"]): index
        for index, x in enumerate(results)
    }
    read = 0
    for index, x in enumerate(results):
        if x["kind"] != "ValidatingAdmissionPolicyBinding" or "paramRef" not in x["spec"]:
            continue
        policy = results[position["ValidatingAdmissionPolicy", None, x["spec"]["policyName"]]]
        expected = x["spec"]["paramRef"]
        kind = policy["spec"]["paramKind"]["kind"]
        assert position[kind, expected["namespace"], expected["name"]] < min(
            index, results.index(policy)
        )
        read += 1
    assert read == 1 + len({"fencemade", "fencerules"} & policies(results).keys())


def test_every_binding_is_of_a_role_and_an_account_that_are_there(
    release: tuple[list[rendered.Object], str],
) -> None:
    results, namespace = release
    existing = {(x["kind"], x["metadata"]["name"]) for x in results}
    bindings = [x for x in results if x["kind"] in {"RoleBinding", "ClusterRoleBinding"}]
    for x in bindings:
        role = x["roleRef"]["kind"], x["roleRef"]["name"]
        assert role in existing or role[1] == "system:openshift:scc:privileged"
        for subject in x["subjects"]:
            assert ("ServiceAccount", subject["name"]) in existing
            assert subject["namespace"] == namespace
    assert len(bindings) >= 3


def test_no_role_holds_a_wildcard_or_others_secrets(
    release: tuple[list[rendered.Object], str],
) -> None:
    results, _ = release
    roles = [x for x in results if x["kind"] in {"Role", "ClusterRole"}]
    assert "*" not in json.dumps([x["rules"] for x in roles])
    for x in roles:
        of_secrets = [r for r in x["rules"] if "secrets" in r["resources"]]
        if not of_secrets:
            continue
        assert x["kind"] == "Role"
        name, _, component = x["metadata"]["name"].rpartition("-")
        usual = {"admission": ["get", "update"], "leave": ["delete"]}
        for rule in of_secrets:
            if "resourceNames" in rule:
                assert rule["verbs"] == usual[component]
                assert rule["resourceNames"] == [f"{name}-admission-tls"]
            else:
                assert (component, rule["verbs"]) == ("admission", ["create"])


@pytest.mark.parametrize(
    "flags",
    [
        ("admission.tls.mode=cert-manager",),
        ("admission.tls.mode=secret", "admission.tls.secretName=a", "admission.tls.caBundle=PEM"),
    ],
)
def test_a_webhook_with_anothers_certificate_has_no_rights_on_secrets_or_configurations(
    flags: tuple[str, ...],
) -> None:
    objects = rendered.objects(*rendered.setting(*flags))
    for kind in ("Role", "ClusterRole"):
        for name in ("ration-admission", "ration-leave"):
            rules = json.dumps(rendered.one(objects, kind, name)["rules"])
            assert "secrets" not in rules
            assert "webhookconfigurations" not in rules
    assert "webhooks" not in policies(objects)


def test_the_api_server_calls_the_webhook_by_the_name_of_its_certificate(
    release: tuple[list[rendered.Object], str],
) -> None:
    results, namespace = release
    (service,) = [
        x for x in results if x["kind"] == "Service" and "admission" in x["metadata"]["name"]
    ]
    hooks = [
        w for x in results if x["kind"].endswith("WebhookConfiguration") for w in x["webhooks"]
    ]
    assert len(hooks) >= 2
    for hook in hooks:
        request = hook["clientConfig"]["service"]
        assert (request["name"], request["namespace"]) == (service["metadata"]["name"], namespace)
        assert request["path"] in {"/validate", "/mutate", "/gate"}
        assert hook["timeoutSeconds"] <= 5


VALUES: tuple[tuple[str, ...], ...] = (
    (),
    ("controller.labelNodes=true",),
    ("controller.nodes.enabled=true",),
    ("controller.podGroups=true",),
    ("controller.managedDrivers[0].name=gpu.example.com",),
    ("controller.web.exposed=true",),
    ("controller.enabled=false", "allocator=scheduler"),
    ("kubeletPlugin.enabled=false", "controller.managedDrivers[0].name=gpu.example.com"),
    ("admission.enabled=false",),
    ("admission.tls.mode=cert-manager",),
    ("uninstall.enabled=false",),
)


def test_every_rule_has_a_reason_and_every_reason_a_rule() -> None:
    rules = [rights_page.rendered(rendered.objects(*rendered.setting(*names))) for names in VALUES]
    usual = {rule for rule, statement in why.WHY.items() if not statement.only}
    assert frozenset(why.WHY) == rules[0].union(*rules)
    assert rules[0] == usual
    everything = rights_page.rendered(rendered.objects(f"--values={rendered.EVERYTHING}"))
    assert everything == frozenset(why.WHY)


def test_a_rule_for_what_was_not_asked_for_is_not_there() -> None:
    optional = {rule: statement.only for rule, statement in why.WHY.items() if statement.only}
    assert optional
    usual = rights_page.rendered(rendered.objects())
    for value in {name for only in optional.values() for name in only}:
        more = rights_page.rendered(rendered.objects(f"--set={value}")) - usual
        assert more == {rule for rule, only in optional.items() if value in only}


def test_without_a_component_nobody_has_its_rights() -> None:
    usual = rights_page.rendered(rendered.objects())
    for component, value in (("admission", "admission"), ("leave", "uninstall")):
        rules = rights_page.rendered(rendered.objects(f"--set={value}.enabled=false"))
        assert {rule.component for rule in usual - rules} >= {component}
        assert component not in {rule.component for rule in rules}


def test_the_plugins_rights_are_of_its_driver_only() -> None:
    objects = rendered.objects("--set=driverName=gpu.example.com")
    (rule,) = [
        r
        for r in rendered.one(objects, "ClusterRole", "ration-kubeletplugin")["rules"]
        if r["resources"] == ["resourceclaims/driver"]
    ]
    assert rule["resourceNames"] == ["gpu.example.com"]
    slices = policies(objects)["slices"]["spec"]["validations"][1]
    assert 'spec.driver == "gpu.example.com"' in slices["expression"]


def test_every_name_fits_a_label(release: tuple[list[rendered.Object], str]) -> None:
    results, _ = release
    for x in results:
        if x["kind"] != "DeviceClass":
            assert len(x["metadata"]["name"]) <= 63


SECOND = ("driverName=gpu.example.com", "crds.install=false")


def test_two_releases_share_no_object() -> None:
    both = [
        {
            (x["kind"], x["metadata"].get("namespace"), x["metadata"]["name"])
            for x in rendered.objects(*flags, release=name, namespace=name)
        }
        for name, flags in (("one", ()), ("two", rendered.setting(*SECOND)))
    ]
    assert not both[0] & both[1]

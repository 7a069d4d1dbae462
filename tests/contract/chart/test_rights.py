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


def pods(found: list[rendered.Object]) -> dict[str, str]:
    """The account of each component's pods."""
    return {
        x["metadata"]["labels"]["app.kubernetes.io/component"]: x["spec"]["template"]["spec"][
            "serviceAccountName"
        ]
        for x in found
        if x["kind"] in {"Deployment", "DaemonSet"}
    }


def policies(found: list[rendered.Object]) -> dict[str, Any]:
    """Return the policies by the suffix of their names."""
    return {
        x["metadata"]["name"].rpartition("-")[2]: x
        for x in found
        if x["kind"] == "ValidatingAdmissionPolicy"
    }


def test_pods_are_gated_where_a_controller_opens_gates_and_kubernetes_can() -> None:
    def gates(*flags: str) -> set[str]:
        found = rendered.kinds(rendered.objects(*flags))
        return {kind for kind in found if kind.startswith("MutatingAdmissionPolicy")}

    both = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    assert gates("--kube-version=1.36.4") == gates("--kube-version=1.37.1") == both
    assert gates("--kube-version=1.35.2") == set()
    for value in ("policies.gate=false", "policies.enabled=false"):
        assert gates(f"--set={value}") == set()
    assert gates(*rendered.setting("controller.enabled=false", "allocator=scheduler")) == set()


def test_each_policy_speaks_of_the_account_that_the_pods_have(
    release: tuple[list[rendered.Object], str],
) -> None:
    found, namespace = release
    accounts, there = pods(found), policies(found)
    more = dict.fromkeys(ON_DEMAND & there.keys(), "controller")
    assert {*more} in (set(), ON_DEMAND)
    for name, component in (OF_WHOM | more).items():
        (condition,) = there[name]["spec"]["matchConditions"]
        user = f"system:serviceaccount:{namespace}:{accounts[component]}"
        assert condition["expression"] == f'request.userInfo.username == "{user}"'
    assert {*OF_WHOM, *more, "reservations", "tolerations"} == set(there)


def test_only_a_controller_that_labels_nodes_may_patch_them() -> None:
    values = ("controller.labelNodes=true", "controller.nodes.enabled=true")
    for flags in ((), *((f"--set={value}",) for value in values)):
        found = rendered.objects(*flags)
        rules = rendered.one(found, "ClusterRole", "ration-controller")["rules"]
        patches = any(r["resources"] == ["nodes"] and "patch" in r["verbs"] for r in rules)
        assert patches == bool(flags)


def test_each_policy_is_in_force(release: tuple[list[rendered.Object], str]) -> None:
    found, _ = release
    bindings = {
        x["spec"]["policyName"]: x["spec"]["validationActions"]
        for x in found
        if x["kind"] == "ValidatingAdmissionPolicyBinding"
    }
    names = {x["metadata"]["name"] for x in policies(found).values()}
    assert bindings == {name: ["Deny"] for name in names}


def test_what_a_policy_reads_is_installed_before_it(
    release: tuple[list[rendered.Object], str],
) -> None:
    found, _ = release
    at = {
        (x["kind"], x["metadata"].get("namespace"), x["metadata"]["name"]): index
        for index, x in enumerate(found)
    }
    read = 0
    for index, x in enumerate(found):
        if x["kind"] != "ValidatingAdmissionPolicyBinding" or "paramRef" not in x["spec"]:
            continue
        policy = found[at["ValidatingAdmissionPolicy", None, x["spec"]["policyName"]]]
        wanted = x["spec"]["paramRef"]
        kind = policy["spec"]["paramKind"]["kind"]
        assert at[kind, wanted["namespace"], wanted["name"]] < min(index, found.index(policy))
        read += 1
    assert read == 1 + ("fencemade" in policies(found))


def test_every_binding_is_of_a_role_and_an_account_that_are_there(
    release: tuple[list[rendered.Object], str],
) -> None:
    found, namespace = release
    there = {(x["kind"], x["metadata"]["name"]) for x in found}
    bindings = [x for x in found if x["kind"] in {"RoleBinding", "ClusterRoleBinding"}]
    for x in bindings:
        role = x["roleRef"]["kind"], x["roleRef"]["name"]
        assert role in there or role[1] == "system:openshift:scc:privileged"
        for subject in x["subjects"]:
            assert ("ServiceAccount", subject["name"]) in there
            assert subject["namespace"] == namespace
    assert len(bindings) >= 3


def test_no_role_holds_a_wildcard_or_others_secrets(
    release: tuple[list[rendered.Object], str],
) -> None:
    found, _ = release
    roles = [x for x in found if x["kind"] in {"Role", "ClusterRole"}]
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
    found = rendered.objects(*rendered.setting(*flags))
    for kind in ("Role", "ClusterRole"):
        for name in ("ration-admission", "ration-leave"):
            rules = json.dumps(rendered.one(found, kind, name)["rules"])
            assert "secrets" not in rules
            assert "webhookconfigurations" not in rules
    assert "webhooks" not in policies(found)


def test_the_api_server_calls_the_webhook_by_the_name_of_its_certificate(
    release: tuple[list[rendered.Object], str],
) -> None:
    found, namespace = release
    (service,) = [
        x for x in found if x["kind"] == "Service" and "admission" in x["metadata"]["name"]
    ]
    hooks = [w for x in found if x["kind"].endswith("WebhookConfiguration") for w in x["webhooks"]]
    assert len(hooks) >= 2
    for hook in hooks:
        asked = hook["clientConfig"]["service"]
        assert (asked["name"], asked["namespace"]) == (service["metadata"]["name"], namespace)
        assert asked["path"] in {"/validate", "/mutate", "/gate"}
        assert hook["timeoutSeconds"] <= 5


VALUES: tuple[tuple[str, ...], ...] = (
    (),
    ("controller.labelNodes=true",),
    ("controller.nodes.enabled=true",),
    ("controller.podGroups=true",),
    ("controller.web.exposed=true",),
    ("controller.enabled=false", "allocator=scheduler"),
    ("admission.enabled=false",),
    ("admission.tls.mode=cert-manager",),
    ("uninstall.enabled=false",),
)


def test_every_rule_has_a_reason_and_every_reason_a_rule() -> None:
    found = [rights_page.rendered(rendered.objects(*rendered.setting(*one))) for one in VALUES]
    usual = {rule for rule, said in why.WHY.items() if not said.only}
    assert frozenset(why.WHY) == found[0].union(*found)
    assert found[0] == usual
    everything = rights_page.rendered(rendered.objects(f"--values={rendered.EVERYTHING}"))
    assert everything == frozenset(why.WHY)


def test_a_rule_for_what_was_not_asked_for_is_not_there() -> None:
    optional = {rule: said.only for rule, said in why.WHY.items() if said.only}
    assert optional
    usual = rights_page.rendered(rendered.objects())
    for value in {one for only in optional.values() for one in only}:
        more = rights_page.rendered(rendered.objects(f"--set={value}")) - usual
        assert more == {rule for rule, only in optional.items() if value in only}


def test_without_a_component_nobody_has_its_rights() -> None:
    usual = rights_page.rendered(rendered.objects())
    for component, value in (("admission", "admission"), ("leave", "uninstall")):
        found = rights_page.rendered(rendered.objects(f"--set={value}.enabled=false"))
        assert {one.component for one in usual - found} >= {component}
        assert component not in {one.component for one in found}


def test_the_plugins_rights_are_of_its_driver_only() -> None:
    found = rendered.objects("--set=driverName=gpu.example.com")
    (rule,) = [
        r
        for r in rendered.one(found, "ClusterRole", "ration-kubeletplugin")["rules"]
        if r["resources"] == ["resourceclaims/driver"]
    ]
    assert rule["resourceNames"] == ["gpu.example.com"]
    slices = policies(found)["slices"]["spec"]["validations"][1]
    assert 'spec.driver == "gpu.example.com"' in slices["expression"]


def test_every_name_fits_a_label(release: tuple[list[rendered.Object], str]) -> None:
    found, _ = release
    for x in found:
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

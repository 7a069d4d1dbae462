from typing import Any

import pytest

from hack.chart import rights, rights_page, why
from hack.chart.rights import Right, Usage

USER = "system:serviceaccount:gpus:plugin"
DRA = "resource.k8s.io"


def a_role(*rules: dict[str, Any], kind: str = "ClusterRole", namespace: str = "") -> list[Any]:
    meta = {"name": "r", "labels": {"app.kubernetes.io/component": "kubeletplugin"}}
    meta |= {"namespace": namespace} if namespace else {}
    return [
        {"kind": kind, "metadata": meta, "rules": list(rules)},
        {
            "kind": f"{kind}Binding",
            "metadata": meta,
            "roleRef": {"kind": kind, "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "plugin", "namespace": "gpus"}],
        },
    ]


def a_rule(group: str, resource: str, *verbs: str, names: tuple[str, ...] = ()) -> dict[str, Any]:
    rule = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return rule | ({"resourceNames": list(names)} if names else {})


def an_event(verb: str, resource: str, code: int = 200, **ref: str) -> dict[str, Any]:
    decision = ref.pop("decision", "allow")
    return {
        "user": {"username": ref.pop("user", USER)},
        "verb": verb,
        "objectRef": {"resource": resource, "apiVersion": "v1", **ref},
        "responseStatus": {"code": code},
        "annotations": {"authorization.k8s.io/decision": decision},
    }


def told(results: list[Any], *events: dict[str, Any]) -> Usage:
    usage = rights.usage(rights.granted(results), rights.requests(events))
    assert set(usage) == {USER}
    return usage[USER]


def test_a_verb_that_no_request_used_is_told() -> None:
    role = a_role(a_rule("", "nodes", "get", "list"))
    assert told(role, an_event("get", "nodes", name="a")).unused == (Right("", "nodes", "list"),)


@pytest.mark.parametrize(
    "event",
    [
        an_event("get", "nodes", code=404),
        an_event("get", "nodes", code=0),
        an_event("get", "nodes", code=403),
        an_event("get", "nodes", user="system:serviceaccount:gpus:other"),
        an_event("get", "nodes", subresource="status"),
        an_event("get", "nodes", apiGroup="metrics.k8s.io"),
        an_event("list", "nodes"),
    ],
)
def test_failed_or_foreign_requests_use_no_right(
    event: dict[str, Any],
) -> None:
    role = a_role(a_rule("", "nodes", "get"))
    assert told(role, event).unused == (Right("", "nodes", "get"),)


@pytest.mark.parametrize("verb", ["update", "patch"])
def test_a_write_of_what_was_not_there_uses_the_right_to_create_it(verb: str) -> None:
    role = a_role(a_rule("", "nodes", verb, "create"))
    created = Right("", "nodes", "create")
    assert told(role, an_event(verb, "nodes", code=201, name="a")) == Usage((), ())
    assert told(role, an_event(verb, "nodes", name="a")).unused == (created,)


def test_a_subresource_is_a_right_of_its_own() -> None:
    role = a_role(a_rule("", "pods/eviction", "create"))
    event = an_event("create", "pods", subresource="eviction", name="p", namespace="n")
    assert told(role, event) == Usage((), ())


def test_each_name_of_a_rule_is_to_be_used() -> None:
    role = a_role(a_rule("apps", "daemonsets", "get", names=("a", "b")))
    event = an_event("get", "daemonsets", apiGroup="apps", name="a", namespace="gpus")
    assert told(role, event).unused == (Right("apps", "daemonsets", "get", "b"),)


def test_a_right_in_a_namespace_is_not_used_in_another() -> None:
    role = a_role(a_rule("", "secrets", "create"), kind="Role", namespace="gpus")
    right = Right("", "secrets", "create", "", "gpus")
    assert told(role, an_event("create", "secrets", namespace="n")).unused == (right,)
    assert told(role, an_event("create", "secrets", namespace="gpus")).unused == ()


def test_a_request_without_a_right_is_reported_and_one_refused_by_policy_is_not() -> None:
    role = a_role(a_rule("", "pods", "patch"))
    lacking = an_event("delete", "pods", code=403, name="p", namespace="n", decision="forbid")
    narrowed = an_event("patch", "pods", code=403, name="p", namespace="n")
    assert told(role, lacking, narrowed) == Usage(
        unused=(Right("", "pods", "patch"),), refused=(Right("", "pods", "delete", "p", "n"),)
    )


def test_writing_a_status_uses_the_rights_that_no_request_names_verb_by_verb() -> None:
    role = a_role(
        a_rule(DRA, "resourceclaims/status", "patch"),
        a_rule(DRA, "resourceclaims/binding", "patch", "update"),
        a_rule(DRA, "resourceclaims/driver", "associated-node:patch", names=("gpu.example.com",)),
    )
    event = an_event(
        "patch", "resourceclaims", apiGroup=DRA, subresource="status", name="c", namespace="n"
    )
    assert told(role, event).unused == (Right(DRA, "resourceclaims/binding", "update"),)
    assert len(told(role).unused) == 4


def test_a_binding_of_a_role_that_the_cluster_has_gives_none_of_ours() -> None:
    role = a_role(a_rule("", "nodes", "get"))
    role[1]["roleRef"]["name"] = "system:openshift:scc:privileged"
    assert rights.granted(role) == {}


def test_a_path_without_a_resource_is_no_resource_request() -> None:
    assert not list(rights.requests([{"user": {"username": USER}, "verb": "get"}]))


def test_a_rule_without_a_reason_makes_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "| `resourceclaims/status` (resource.k8s.io) | patch |" in rights_page.page()
    rule = next(iter(why.WHY))
    monkeypatch.delitem(why.WHY, rule)
    with pytest.raises(KeyError):
        rights_page.page()


def test_every_reason_is_a_sentence() -> None:
    for statement in why.WHY.values():
        assert statement.reason.endswith(".")
        assert statement.reason[0].isupper()

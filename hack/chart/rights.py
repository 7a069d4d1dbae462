"""What RBAC grants each account, and what of it was used, by the API server's audit log. Pure."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

Object = Mapping[str, Any]
_CREATED = 201
_STATUS = ("resource.k8s.io", "resourceclaims/status")
_BESIDE_STATUS = frozenset(
    {("resource.k8s.io", "resourceclaims/binding"), ("resource.k8s.io", "resourceclaims/driver")}
)


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource: `resource` is `plural` or `plural/subresource`.

    Without a name it is of every object, without a namespace of every namespace.
    """

    group: str
    resource: str
    verb: str
    name: str = ""
    namespace: str = ""

    def covers(self, other: "Right") -> bool:
        """Whether this right is enough for what `other` does."""
        return (
            (self.group, self.resource, self.verb) == (other.group, other.resource, other.verb)
            and self.name in {"", other.name}
            and self.namespace in {"", other.namespace}
        )


@dataclass(frozen=True, slots=True)
class Request:
    """What an account asked for, and the server's answer; `permitted` is RBAC's word."""

    user: str
    asked: Right
    code: int
    permitted: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one account: rights without a request that succeeded, and requests without a right."""

    unused: tuple[Right, ...]
    refused: tuple[Right, ...]


def rules(found: Iterable[Object]) -> Iterator[tuple[str, str, Object]]:
    """Component, namespace ("": all) and rule of every role among rendered objects."""
    for one in found:
        if one["kind"] in {"Role", "ClusterRole"}:
            meta = one["metadata"]
            component = meta["labels"]["app.kubernetes.io/component"]
            namespace = meta["namespace"] if one["kind"] == "Role" else ""
            yield from ((component, namespace, rule) for rule in one["rules"])


def granted(found: Iterable[Object]) -> dict[str, frozenset[Right]]:
    """The rights of each account by its user name, as the bindings among the objects give them."""
    objects = tuple(found)
    roles = {_place(x): x for x in objects if x["kind"] in {"Role", "ClusterRole"}}
    rights: dict[str, set[Right]] = {}
    for one in objects:
        role = (
            roles.get(_bound(one)) if one["kind"] in {"RoleBinding", "ClusterRoleBinding"} else None
        )
        if role is None:  # no binding, or one of a role that the cluster has
            continue
        own = {right for _, ns, rule in rules([role]) for right in _rights(rule, ns)}
        for subject in one["subjects"]:
            user = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
            rights.setdefault(user, set()).update(own)
    return {user: frozenset(own) for user, own in rights.items()}


def _place(role: Object) -> tuple[str, str, str]:
    namespace = role["metadata"]["namespace"] if role["kind"] == "Role" else ""
    return role["kind"], namespace, role["metadata"]["name"]


def _bound(binding: Object) -> tuple[str, str, str]:
    ref = binding["roleRef"]
    namespace = binding["metadata"]["namespace"] if ref["kind"] == "Role" else ""
    return ref["kind"], namespace, ref["name"]


def _rights(rule: Object, namespace: str) -> Iterator[Right]:
    names = rule.get("resourceNames") or ("",)
    each = itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"], names)
    for group, resource, verb, name in each:
        yield Right(group, resource, verb, name, namespace)


def requests(events: Iterable[Object]) -> Iterator[Request]:
    """The requests for resources among audit.k8s.io/v1 Events."""
    for event in events:
        ref = event.get("objectRef") or {}
        if "resource" not in ref:
            continue
        plural, below = ref["resource"], ref.get("subresource")
        asked = Right(
            ref.get("apiGroup", ""),
            f"{plural}/{below}" if below else plural,
            event["verb"],
            ref.get("name", ""),
            ref.get("namespace", ""),
        )
        decision = (event.get("annotations") or {}).get("authorization.k8s.io/decision")
        code = (event.get("responseStatus") or {}).get("code", 0)
        one = Request(event["user"]["username"], asked, code, decision == "allow")
        yield one
        if code == _CREATED and asked.verb != "create":
            # What was not there was made by a write of it: asked for while that is served
            # (kubernetes 1.37, apiserver/pkg/endpoints/handlers/update.go).
            yield replace(one, asked=replace(asked, verb="create"))


def usage(rights: Mapping[str, frozenset[Right]], asked: Iterable[Request]) -> dict[str, Usage]:
    """What each account did not use, and what it was refused for want of a right."""
    used: dict[str, set[Right]] = {user: set() for user in rights}
    refused: dict[str, set[Right]] = {user: set() for user in rights}
    for one in asked:
        if one.user not in rights:
            continue
        if not one.permitted:
            refused[one.user].add(one.asked)
        elif 0 < one.code < 400:  # noqa: PLR2004 - HTTP: what was refused used nothing
            used[one.user].add(one.asked)
    return {
        user: Usage(
            tuple(sorted(r for r in own if not _is_used(r, used[user]))),
            tuple(sorted(refused[user])),
        )
        for user, own in rights.items()
    }


def _is_used(right: Right, asked: Iterable[Right]) -> bool:
    """Two rights are named by no request: they are asked for while a claim's status is validated.

    (kubernetes 1.36, pkg/registry/resource/utils.go.) The log has the write of the status only.
    """
    if (right.group, right.resource) in _BESIDE_STATUS:
        status = Right(*_STATUS, right.verb.rpartition(":")[2])
        return any(status.covers(one) for one in asked)
    return any(right.covers(one) for one in asked)

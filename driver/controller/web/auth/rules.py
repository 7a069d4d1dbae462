"""Who may read the page where it is reached from beyond its own host. Pure.

A token is worth what the API server says it is worth: it names somebody (TokenReview), and they
may list what the page is made of (SubjectAccessReview).
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NEEDED = (("resource.k8s.io", "resourceclaims"), ("", "pods"))
"""What must be allowed to be listed in all namespaces: group and resource."""
_NOT_KNOWN = "the token is not valid: expected one of this cluster"


@dataclass(frozen=True, slots=True)
class Allowed:
    """They may read it."""

    user: str


@dataclass(frozen=True, slots=True)
class Refused:
    """401: nobody is known by that token; 403: whom it names lacks a right."""

    code: int
    why: str


Verdict = Allowed | Refused
NO_TOKEN = Refused(401, "a token is needed: send it as `Authorization: Bearer`, or log in")


def bearer(authorization: str, cookie: str) -> str:
    """The token of a request; "" where it has none."""
    kind, _, token = authorization.partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else cookie


def token_review(token: str) -> dict[str, Any]:
    """What asks whom a token names."""
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    }


def identity(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Whom a TokenReview's answer names; None: nobody."""
    status = answer.get("status") or {}
    user = status.get("user")
    return user if status.get("authenticated") is True and isinstance(user, dict) else None


def access_reviews(user: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """What asks whether they may list each kind that is needed."""
    who = {
        "user": user.get("username", ""),
        "groups": user.get("groups") or [],
        "uid": user.get("uid", ""),
        "extra": user.get("extra") or {},
    }
    return tuple(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                **who,
                "resourceAttributes": {"verb": "list", "group": group, "resource": resource},
            },
        }
        for group, resource in NEEDED
    )


def verdict(user: Mapping[str, Any] | None, answers: Sequence[Mapping[str, Any]]) -> Verdict:
    """By the answers to `access_reviews`, in their order."""
    if user is None:
        return Refused(401, _NOT_KNOWN)
    name = str(user.get("username", ""))
    for (group, resource), answer in zip(NEEDED, answers, strict=True):
        if (answer.get("status") or {}).get("allowed") is not True:
            full = f"{resource}.{group}" if group else resource
            return Refused(403, f"{name} may not list {full} in all namespaces")
    return Allowed(name)


def is_loopback(host: str) -> bool:
    """Whether an address is reached from its own host alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_local_name(header: str) -> bool:
    """Whether a Host header names the loopback, as a browser behind a port-forward says it.

    A page of somebody else's whose name was made to mean 127.0.0.1 says that name.
    """
    host = header.rsplit(":", 1)[0] if not header.endswith("]") else header
    return is_loopback(host)

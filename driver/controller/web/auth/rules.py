"""Access rules of the page where it is reachable from other hosts. Pure.

The API server decides: a token names a user (TokenReview), who may list what the page is made of
(SubjectAccessReview).
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
    """The user may read the page."""

    user: str


@dataclass(frozen=True, slots=True)
class Refused:
    """401: the token is not valid; 403: the user lacks a right."""

    code: int
    why: str


Verdict = Allowed | Refused
NO_TOKEN = Refused(401, "a token is needed: send it as `Authorization: Bearer`, or log in")


def bearer(authorization: str, cookie: str) -> str:
    """The token of a request; "" where it has none."""
    kind, _, token = authorization.partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else cookie


def token_review(token: str) -> dict[str, Any]:
    """Return the TokenReview of a token."""
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    }


def identity(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the user of a TokenReview's answer; None if it is not authenticated."""
    status = answer.get("status") or {}
    user = status.get("user")
    return user if status.get("authenticated") is True and isinstance(user, dict) else None


def access_reviews(user: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the SubjectAccessReviews for listing each needed kind."""
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
    """Return the verdict by the answers to `access_reviews`, in their order."""
    if user is None:
        return Refused(401, _NOT_KNOWN)
    name = str(user.get("username", ""))
    for (group, resource), answer in zip(NEEDED, answers, strict=True):
        if (answer.get("status") or {}).get("allowed") is not True:
            full = f"{resource}.{group}" if group else resource
            return Refused(403, f"{name} may not list {full} in all namespaces")
    return Allowed(name)


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from its own host alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_local_name(header: str) -> bool:
    """Return whether a Host header names the loopback, as behind a port-forward.

    Rejects DNS rebinding: a foreign page whose name resolves to 127.0.0.1 sends that name.
    """
    host = header.rsplit(":", 1)[0] if not header.endswith("]") else header
    return is_loopback(host)

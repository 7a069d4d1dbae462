"""Implements the token and access reviews of an API server."""

from typing import Any

from driver.kube import gvr

GOOD = "good"
WHO = {"username": "ada", "groups": ["team"], "uid": "1", "extra": {"scopes": ["x"]}}


def allowed(*, yes: bool) -> dict[str, Any]:
    return {"status": {"allowed": yes}}


class Api:
    """An API server that knows one token, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may = True

    def create(self, resource: gvr.Resource, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(resource.plural)
        if resource.plural == "tokenreviews":
            existing = body["spec"]["token"] == GOOD
            return {"status": {"authenticated": existing, "user": WHO if existing else None}}
        return allowed(yes=self.may)

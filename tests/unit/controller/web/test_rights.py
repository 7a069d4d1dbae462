from typing import Any

import pytest

from driver.controller.web import callers, rights
from driver.kube import resource
from tests.fakes import clock as clocks

GOOD = "good"
WHO = {"username": "ada", "groups": ["team"], "uid": "1", "extra": {"scopes": ["x"]}}


def allowed(*, yes: bool) -> dict[str, Any]:
    return {"status": {"allowed": yes}}


def test_whose_token_is_known_and_who_may_list_both_may_read() -> None:
    assert rights.verdict(WHO, [allowed(yes=True)] * 2) == rights.Allowed("ada")


def test_the_right_that_lacks_is_named() -> None:
    assert rights.verdict(WHO, [allowed(yes=True), allowed(yes=False)]) == rights.Refused(
        403, "ada may not list pods in all namespaces"
    )
    refused = rights.verdict(WHO, [{}, {}])
    assert refused == rights.Refused(
        403, "ada may not list resourceclaims.resource.k8s.io in all namespaces"
    )


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"status": {"error": "expired"}},
        {"status": {"authenticated": False, "user": WHO}},
        {"status": {"authenticated": "yes", "user": WHO}},
        {"status": {"authenticated": True}},
    ],
)
def test_nobody_is_who_the_api_server_does_not_say_they_are(answer: dict[str, Any]) -> None:
    assert rights.identity(answer) is None
    found = rights.verdict(rights.identity(answer), [])
    assert isinstance(found, rights.Refused)
    assert found.code == 401


def test_reviews_are_of_the_whole_identity() -> None:
    for review in rights.access_reviews(WHO):
        spec = review["spec"]
        told = (spec["user"], spec["groups"], spec["uid"], spec["extra"])
        assert told == ("ada", ["team"], "1", {"scopes": ["x"]})
        assert spec["resourceAttributes"]["verb"] == "list"
        assert "namespace" not in spec["resourceAttributes"]


def test_a_token_is_of_the_header_and_else_of_the_cookie() -> None:
    assert rights.bearer("Bearer a", "b") == "a"
    assert rights.bearer("bearer  a ", "") == "a"
    assert rights.bearer("Basic a", "b") == "b"
    assert rights.bearer("", "") == ""


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost:8081", True),
        ("127.0.0.1:8081", True),
        ("127.0.0.1", True),
        ("[::1]:8081", True),
        ("[::1]", True),
        ("rebound.example.com:8081", False),
        ("localhost.example.com", False),
        ("10.0.0.1:8081", False),
        ("", False),
    ],
)
def test_only_names_of_the_loopback_are_local(host: str, *, local: bool) -> None:
    assert rights.is_local_name(host) is local


class Api:
    """An API server that knows one token, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may = True

    def create(self, resource: resource.Resource, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(resource.plural)
        if resource.plural == "tokenreviews":
            known = body["spec"]["token"] == GOOD
            return {"status": {"authenticated": known, "user": WHO if known else None}}
        return allowed(yes=self.may)


def test_a_verdict_is_remembered_for_ten_seconds() -> None:
    api, time = Api(), clocks.FakeClock()
    known = callers.Callers(api, time)
    assert known.verdict("good") == rights.Allowed("ada")
    api.may = False
    time.advance(9)
    assert known.verdict("good") == rights.Allowed("ada")
    assert api.asked == ["tokenreviews", "subjectaccessreviews", "subjectaccessreviews"]
    time.advance(2)
    assert isinstance(known.verdict("good"), rights.Refused)


def test_a_bad_token_is_remembered_too_and_none_is_never_asked_about() -> None:
    api = Api()
    known = callers.Callers(api, clocks.FakeClock())
    assert known.verdict("") == rights.NO_TOKEN
    assert api.asked == []
    for _ in range(3):
        assert known.verdict("bad") == rights.Refused(
            401, "the token is not valid: expected one of this cluster"
        )
    assert api.asked == ["tokenreviews"]

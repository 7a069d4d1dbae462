from typing import Any

import pytest

from driver.controller.web.auth import rules, token_reviews
from tests.fakes import clock as clocks
from tests.fakes.review_api import WHO, Api, allowed


def test_a_known_token_and_the_right_to_list_are_needed_to_read() -> None:
    assert rules.verdict(WHO, [allowed(yes=True)] * 2) == rules.Allowed("ada")


def test_the_right_that_lacks_is_named() -> None:
    assert rules.verdict(WHO, [allowed(yes=True), allowed(yes=False)]) == rules.Refused(
        403, "ada may not list pods in all namespaces"
    )
    refused = rules.verdict(WHO, [{}, {}])
    assert refused == rules.Refused(
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
def test_a_token_unknown_to_the_api_server_is_refused(answer: dict[str, Any]) -> None:
    assert rules.identity(answer) is None
    verdict = rules.verdict(rules.identity(answer), [])
    assert isinstance(verdict, rules.Refused)
    assert verdict.code == 401


def test_reviews_are_of_the_whole_identity() -> None:
    for review in rules.access_reviews(WHO):
        spec = review["spec"]
        values = (spec["user"], spec["groups"], spec["uid"], spec["extra"])
        assert values == ("ada", ["team"], "1", {"scopes": ["x"]})
        assert spec["resourceAttributes"]["verb"] == "list"
        assert "namespace" not in spec["resourceAttributes"]


def test_a_token_is_of_the_header_and_else_of_the_cookie() -> None:
    assert rules.bearer("Bearer a", "b") == "a"
    assert rules.bearer("bearer  a ", "") == "a"
    assert rules.bearer("Basic a", "b") == "b"
    assert rules.bearer("", "") == ""


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
    assert rules.is_local_name(host) is local


def test_a_verdict_is_remembered_for_ten_seconds() -> None:
    api, time = Api(), clocks.FakeClock()
    token_reviewer = token_reviews.TokenReviewer(api, time)
    assert token_reviewer.verdict("good") == rules.Allowed("ada")
    api.may = False
    time.advance(9)
    assert token_reviewer.verdict("good") == rules.Allowed("ada")
    assert api.asked == ["tokenreviews", "subjectaccessreviews", "subjectaccessreviews"]
    time.advance(2)
    assert isinstance(token_reviewer.verdict("good"), rules.Refused)


def test_a_bad_token_is_remembered_too_and_none_is_never_asked_about() -> None:
    api = Api()
    token_reviewer = token_reviews.TokenReviewer(api, clocks.FakeClock())
    assert token_reviewer.verdict("") == rules.NO_TOKEN
    assert api.asked == []
    for _ in range(3):
        assert token_reviewer.verdict("bad") == rules.Refused(
            401, "the token is not valid: expected one of this cluster"
        )
    assert api.asked == ["tokenreviews"]

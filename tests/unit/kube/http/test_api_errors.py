import json

import pytest

from driver import errors
from driver.kube import gvr
from driver.kube.http import api_errors


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.ApiError),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (504, "Timeout", errors.ServerError),
    ],
)
def test_each_answer_has_its_class(status: int, reason: str, kind: type[errors.ApiError]) -> None:
    body = json.dumps({"kind": "Status", "reason": reason, "message": "why"}).encode()
    error = api_errors.from_response(status, {}, body)
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (status, reason, "why")


def test_retry_after_comes_from_the_header_or_from_the_details() -> None:
    body = json.dumps({"details": {"retryAfterSeconds": 4}}).encode()
    assert api_errors.from_response(429, {"Retry-After": "9"}, body).retry_after_s == 9
    assert api_errors.from_response(429, {}, body).retry_after_s == 4
    assert api_errors.from_response(429, {"Retry-After": "tomorrow"}, b"").retry_after_s is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\xff\xfe", b'{"reason": 3}'])
def test_a_body_that_is_no_status_is_still_an_error(body: bytes) -> None:
    assert isinstance(api_errors.from_response(502, {}, body), errors.ServerError)


def test_paths_are_the_api_servers() -> None:
    claims = gvr.RESOURCE_CLAIMS
    assert claims.path() == "/apis/resource.k8s.io/v1/resourceclaims"
    assert claims.path("ns", "c", "status") == (
        "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status"
    )
    assert gvr.PODS.path("ns") == "/api/v1/namespaces/ns/pods"
    assert gvr.NODES.path(name="a") == "/api/v1/nodes/a"


def test_a_name_cannot_leave_its_place_in_the_path() -> None:
    assert gvr.PODS.path("ns", "../secrets/x") == "/api/v1/namespaces/ns/pods/..%2Fsecrets%2Fx"

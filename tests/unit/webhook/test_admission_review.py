import base64
import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver import errors
from driver.webhook import admission_review

KIND = {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}


def a_review(**request: Any) -> dict[str, Any]:
    requested = {"uid": "u1", "kind": KIND, "operation": "CREATE", **request}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": requested}


def read(document: object) -> admission_review.ReviewRequest:
    return admission_review.read(json.dumps(document).encode())


def answered(answer: admission_review.ReviewResponse) -> dict[str, Any]:
    shown = json.loads(admission_review.render(read(a_review()), answer))
    assert (shown["apiVersion"], shown["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    return dict(shown["response"])


def test_a_request_is_read_whole() -> None:
    review_request = read(
        a_review(namespace="team", name="one", dryRun=True, subResource="status", object={"a": 1})
    )
    assert review_request.kind == admission_review.ObjectKind(
        "resource.k8s.io", "v1", "ResourceClaim"
    )
    assert (review_request.namespace, review_request.name, review_request.subresource) == (
        "team",
        "one",
        "status",
    )
    assert (review_request.dry_run, review_request.object, review_request.old) == (
        True,
        {"a": 1},
        None,
    )


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "the body: Expecting value"),
        (b"\xff\xfe", "the body: "),
        (b"[]", "the body: is list; expected an object"),
        (b"[" * 100_000, "the body: is nested too deeply"),
        (b'{"a": ' * 100_000, "the body: is nested too deeply"),
        (b"1" * 5000, "the body: Exceeds the limit"),
        (b'{"apiVersion": NaN}', "the body: NaN is no JSON value"),
        (b" " * (admission_review.MOST_BYTES + 1), "the body: has 3145729 bytes"),
        (b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}', "is 'admission"),
    ],
)
def test_a_body_that_is_no_review_says_why(body: bytes, problem: str) -> None:
    with pytest.raises(errors.BadInput) as raised:
        admission_review.read(body)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"uid": None}, "request.uid: is missing"),
        ({"uid": 1}, "request.uid: is int"),
        ({"kind": "Pod"}, "request.kind: is str"),
        ({"kind": {"group": ""}}, "request.kind.version: is missing"),
        ({"operation": ["CREATE"]}, "request.operation: is list"),
        ({"dryRun": "yes"}, "request.dryRun: is str"),
        ({"object": []}, "request.object: is list"),
        ({"oldObject": 3}, "request.oldObject: is int"),
    ],
)
def test_a_field_of_a_wrong_type_is_named(request_: dict[str, Any], problem: str) -> None:
    with pytest.raises(errors.BadInput) as raised:
        read(a_review(**request_))
    assert str(raised.value).startswith(problem)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from(["uid", "kind", "operation", "object", "oldObject", "dryRun", "name"])


@given(st.dictionaries(FIELDS, JSON), JSON)
@settings(max_examples=300)
def test_any_review_is_read_or_refused_with_a_reason(changed: dict[str, Any], other: Any) -> None:
    for document in (a_review(**changed), {**a_review(), "request": other}, other):
        with contextlib.suppress(errors.BadInput):
            read(document)


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused_with_a_reason(body: bytes) -> None:
    with pytest.raises(errors.BadInput):
        admission_review.read(body)


def test_keys_that_stand_twice_are_found_where_they_stand() -> None:
    text = json.dumps(a_review(object={"deep": [{"sharing": 1}]}))
    review_request = admission_review.read(
        text.replace('{"sharing": 1}', '{"sharing": 1, "sharing": 2}').encode()
    )
    assert [
        str(bad_input)
        for bad_input in admission_review.find_duplicate(review_request.object, "object")
    ] == ["object.deep[0].sharing: is there twice; expected each field once"]
    assert (
        list(
            admission_review.find_duplicate(read(a_review(object={"a": [1, "b"]})).object, "object")
        )
        == []
    )


def test_a_refusal_carries_code_and_message_and_no_patch() -> None:
    no = admission_review.ReviewResponse(
        allowed=False, message="no", patch=({"op": "remove", "path": "/a"},)
    )
    assert answered(no) == {
        "uid": "u1",
        "allowed": False,
        "status": {"code": 403, "message": "no"},
    }


def test_a_patch_is_base64_of_its_operations() -> None:
    result = answered(admission_review.ReviewResponse(patch=({"op": "remove", "path": "/a"},)))
    assert result["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(result["patch"])) == [{"op": "remove", "path": "/a"}]


def test_warnings_are_few_short_and_each_once() -> None:
    result = answered(
        admission_review.ReviewResponse(warnings=("x" * 300, "same", "same", *map(str, range(40))))
    )
    assert len(result["warnings"]) == 32
    assert len(result["warnings"][0]) == 256
    assert result["warnings"].count("same") == 1
    assert answered(admission_review.ALLOWED) == {"uid": "u1", "allowed": True}

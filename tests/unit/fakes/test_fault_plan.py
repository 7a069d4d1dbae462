"""The fault proxy's plan: reproducible, and in the measure that was asked."""

import pytest

from tests.fakes.faultproxy import plan

HALF = plan.Seeded(
    7,
    {plan.Kind.PATCH: ((0.25, plan.ResetAfter()), (0.25, plan.Answer(409, "Conflict")))},
    ((0.5, plan.Lose()),),
    bookmark_loss=1.0,
)


def patches(chooser: plan.Chooser, count: int = 2000) -> list[plan.Fault | None]:
    return [chooser.of_request(plan.Kind.PATCH, number) for number in range(count)]


def test_the_same_seed_is_the_same_plan_in_any_order() -> None:
    again = plan.Seeded(7, HALF.requests, HALF.frames)
    assert patches(again) == patches(HALF)
    backwards = [HALF.of_request(plan.Kind.PATCH, n) for n in reversed(range(50))]
    assert backwards[::-1] == patches(HALF, 50)


def test_another_seed_is_another_plan() -> None:
    assert patches(plan.Seeded(8, HALF.requests)) != patches(HALF)


def test_faults_come_as_often_as_asked_and_only_to_their_kind() -> None:
    results = patches(HALF)
    assert 400 < results.count(plan.ResetAfter()) < 600
    assert 400 < results.count(plan.Answer(409, "Conflict")) < 600
    assert {HALF.of_request(plan.Kind.GET, number) for number in range(100)} == {None}


def test_bookmarks_have_odds_of_their_own() -> None:
    frames = [HALF.of_frame(0, number, bookmark=False) for number in range(1000)]
    assert 400 < frames.count(plan.Lose()) < 600
    assert HALF.of_frame(0, 0, bookmark=True) == plan.Lose()


def test_a_script_is_exactly_what_it_says() -> None:
    script = plan.Script({(plan.Kind.GET, 1): plan.ResetBefore()}, {(0, 2): plan.Cut()})
    assert [script.of_request(plan.Kind.GET, n) for n in range(3)] == [
        None,
        plan.ResetBefore(),
        None,
    ]
    assert script.of_frame(0, 2, bookmark=False) == plan.Cut()
    assert script.of_frame(1, 2, bookmark=False) is None


@pytest.mark.parametrize(
    ("method", "path", "query", "kind"),
    [
        ("GET", "/api/v1/pods", {}, plan.Kind.LIST),
        ("GET", "/api/v1/pods", {"watch": "true"}, plan.Kind.WATCH),
        ("GET", "/api/v1/namespaces", {}, plan.Kind.LIST),
        ("GET", "/api/v1/namespaces/ns", {}, plan.Kind.GET),
        ("GET", "/api/v1/namespaces/ns/pods", {}, plan.Kind.LIST),
        ("GET", "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims", {}, plan.Kind.LIST),
        ("GET", "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/a", {}, plan.Kind.GET),
        ("GET", "/version", {}, plan.Kind.GET),
        ("PATCH", "/api/v1/nodes/a/status", {}, plan.Kind.PATCH),
        ("PUT", "/api/v1/nodes/a", {}, plan.Kind.REPLACE),
        ("POST", "/api/v1/namespaces/ns/pods/p/eviction", {}, plan.Kind.CREATE),
        ("DELETE", "/api/v1/nodes/a", {}, plan.Kind.DELETE),
    ],
)
def test_requests_are_told_apart(
    method: str, path: str, query: dict[str, str], kind: plan.Kind
) -> None:
    assert plan.kind_of(method, path, query) is kind

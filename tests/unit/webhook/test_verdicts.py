import base64
import json
from collections.abc import Mapping
from typing import Any

import prometheus_client
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver import errors, names
from driver.resources import extended_resources
from driver.webhook import admission_review, metrics, verdicts
from driver.webhook import handler as webhook_handler
from driver.webhook.validation import configs, opaque, pods
from tests.fakes import clock
from tests.support.builders import objects
from tests.unit.webhook.cluster import KNOWN, MPS

Raw = dict[str, Any]
CLAIM, POD = ("resource.k8s.io", "v1", "ResourceClaim"), ("", "v1", "Pod")
WRONG = objects.a_claim("one", config=[objects.a_config("Bogus")])
ASKING = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
GPU_POD = {"metadata": {}, "spec": {"containers": [ASKING]}}
TWO_SHARES = {
    "metadata": {"generateName": "web-"},
    "spec": {
        "resourceClaims": [
            {"name": name, "resourceClaimTemplateName": "share"} for name in ("a", "b")
        ],
        "containers": [{"name": "main", "resources": {"claims": [{"name": "a"}, {"name": "b"}]}}],
    },
}


class World:
    """`handling.World` in memory."""

    def __init__(self, **labels: Mapping[str, str]) -> None:
        self.by_namespace = labels
        self.asked: list[str] = []
        self.allocating = True
        self.converted: dict[str, str] = {}

    def converted_resources(self) -> Mapping[str, str]:
        return self.converted

    def cluster_facts(self) -> configs.ClusterFacts:
        return KNOWN

    def claim_part(self, namespace: str, named: pods.ClaimReference) -> opaque.ConfigPart | None:
        self.asked.append(f"{namespace}/{named.source}")
        claim = objects.a_claim("one", objects.a_request(deviceClassName=MPS))
        config_part = opaque.claim_part(admission_review.ObjectKind(*CLAIM), claim)
        return config_part if named.source == "share" else None

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return self.by_namespace.get(namespace, {})

    def is_allocating(self) -> bool:
        return self.allocating


def a_request(
    kind: tuple[str, str, str], obj: Raw | None, **more: Any
) -> admission_review.ReviewRequest:
    fields = {"operation": "CREATE", "namespace": "team", **more}
    return admission_review.ReviewRequest(
        uid="u", kind=admission_review.ObjectKind(*kind), object=obj, **fields
    )


def validated(
    kind: tuple[str, str, str], obj: Raw | None, **more: Any
) -> admission_review.ReviewResponse:
    return verdicts.validate(a_request(kind, obj, **more), World())


def test_wrong_configuration_is_refused_with_its_place() -> None:
    answer = validated(CLAIM, WRONG)
    assert (answer.allowed, answer.code) == (False, 422)
    assert answer.message.startswith("spec.devices.config[0].opaque.parameters.kind: is 'Bogus'")


@pytest.mark.parametrize(
    ("kind", "obj", "more"),
    [
        (CLAIM, None, {"operation": "DELETE", "old": WRONG}),
        (CLAIM, WRONG, {"subresource": "status"}),
        (CLAIM, WRONG, {"operation": "UPDATE", "old": WRONG}),
        (CLAIM, WRONG, {"operation": "CONNECT"}),
        (("apps", "v1", "Deployment"), GPU_POD, {}),
        (POD, TWO_SHARES, {"operation": "UPDATE", "old": {}}),
        (POD, {"spec": {"resourceClaims": 3}}, {}),
        (POD, {"spec": {"containers": []}}, {}),
    ],
)
def test_other_kinds_are_allowed_unchanged(
    kind: tuple[str, str, str], obj: Raw | None, more: Raw
) -> None:
    assert validated(kind, obj, **more) == admission_review.ALLOWED


def test_a_class_that_is_changed_is_looked_at() -> None:
    kind = ("resource.k8s.io", "v1", "DeviceClass")
    wrong = {"spec": {"config": [objects.a_config("Bogus")]}}
    assert not validated(kind, wrong, operation="UPDATE", old={"spec": {}}).allowed


def a_class(policies: str | None, **spec: Any) -> Raw:
    notes = {} if policies is None else {names.POLICIES_ANNOTATION: policies}
    return {"metadata": {"name": "one", "annotations": notes}, "spec": spec}


def test_policies_that_a_class_has_from_now_on_are_looked_at() -> None:
    kind = ("resource.k8s.io", "v1", "DeviceClass")
    refused = validated(kind, a_class("best"), operation="UPDATE", old=a_class("spread"))
    assert (refused.allowed, refused.code) == (False, 422)
    assert refused.message.startswith(
        "metadata.annotations[ration.dev/policies]: 'best' is no policy; expected some of "
    )
    assert not validated(kind, a_class("best"), operation="UPDATE", old={"metadata": 3}).allowed


def test_an_update_that_keeps_the_policies_of_a_class_is_admitted() -> None:
    kind = ("resource.k8s.io", "v1", "DeviceClass")
    noted = a_class("best")
    noted["metadata"]["annotations"]["example.com/owner"] = "platform"
    assert (
        validated(kind, noted, operation="UPDATE", old=a_class("best")) == admission_review.ALLOWED
    )
    assert (
        validated(kind, a_class(None), operation="UPDATE", old=a_class("best"))
        == admission_review.ALLOWED
    )


def test_a_pod_is_measured_by_what_its_templates_ask() -> None:
    world = World()
    answer = verdicts.validate(a_request(POD, TWO_SHARES), world)
    assert "container main has an MPS share" in answer.message
    assert world.asked == ["team/share", "team/share"]


def mutated(
    obj: Raw, texts: list[str] | None = None, world: World | None = None, **more: Any
) -> admission_review.ReviewResponse:
    def ensure(namespace: str, template: extended_resources.Template) -> None:
        if texts is None:
            raise errors.Forbidden(403, "Forbidden", "the namespace is on its way out")
        texts.append(f"{namespace}/{template.name}")

    request = a_request(POD, obj, **more)
    return verdicts.mutate(request, world or World(), ensure, extended_resources.Classes())


def test_a_template_is_made_before_a_pod_is_patched() -> None:
    texts: list[str] = []
    answer = mutated(GPU_POD, texts)
    assert answer.allowed
    assert answer.patch
    assert texts == [f"team/{extended_resources.convert(GPU_POD).templates[0].name}"]


def test_a_dry_run_is_patched_and_makes_nothing() -> None:
    texts: list[str] = []
    assert mutated(GPU_POD, texts, dry_run=True).patch == mutated(GPU_POD, []).patch
    assert texts == []


def test_the_namespaces_label_leaves_pods_alone() -> None:
    texts: list[str] = []
    world = World(team={"ration.dev/convert": "false"})
    assert mutated(GPU_POD, texts, world) == admission_review.ALLOWED
    assert texts == []
    assert mutated(GPU_POD, texts, World(team={"ration.dev/convert": "no"})).patch


def test_the_resource_of_a_labelled_class_is_converted_beside_nvidias() -> None:
    limits = {"nvidia.com/gpu": "1", "example.com/gpu": "2"}
    pod = {
        "metadata": {},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }
    texts: list[str] = []
    world = World()
    world.converted = {"example.com/gpu": "example"}
    answer = mutated(pod, texts, world)
    assert [entry["path"] for entry in answer.patch if entry["op"] == "remove"] == [
        "/spec/containers/0/resources/limits/nvidia.com~1gpu",
        "/spec/containers/0/resources/limits/example.com~1gpu",
    ]
    assert [text.startswith("team/ration-mixed-") for text in texts] == [True]


def test_a_fraction_of_a_labelled_classs_resource_is_refused() -> None:
    resources = {"limits": {"example.com/gpu": "500m"}}
    world = World()
    world.converted = {"example.com/gpu": "example"}
    pod = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    answer = mutated(pod, [], world)
    assert "limits[example.com/gpu]: is 500m; expected a whole number" in answer.message


def test_a_label_of_a_class_that_converts_nothing_is_a_warning() -> None:
    kind = ("resource.k8s.io", "v1", "DeviceClass")
    labels = {names.CONVERT_LABEL: "yes"}
    labelled = {"metadata": {"name": "one", "labels": labels}, "spec": {}}
    (warning,) = validated(kind, labelled, operation="UPDATE", old=a_class(None)).warnings
    assert warning.startswith("metadata.labels[ration.dev/convert]: is 'yes', so pods")
    labels[names.CONVERT_LABEL] = "true"
    assert validated(kind, labelled) == admission_review.ALLOWED


def test_an_unconvertible_pod_is_refused_and_the_label_named() -> None:
    resources = {"limits": {"nvidia.com/gpu": "500m"}}
    answer = mutated({"spec": {"containers": [{"name": "main", "resources": resources}]}}, [])
    assert not answer.allowed
    assert "spec.containers[0].resources.limits[nvidia.com/gpu]: is 500m" in answer.message
    assert "ration.dev/convert=false" in answer.message


def test_without_its_template_a_pod_is_not_let_in() -> None:
    answer = mutated(GPU_POD)
    assert (answer.allowed, answer.code) == (False, 500)
    assert "could not be made: API server: 403" in answer.message


def test_other_objects_and_other_pods_are_not_converted() -> None:
    assert mutated({"spec": {"containers": []}}, []) == admission_review.ALLOWED
    assert mutated(GPU_POD, [], operation="UPDATE") == admission_review.ALLOWED
    assert mutated(GPU_POD, [], subresource="ephemeralcontainers") == admission_review.ALLOWED


def answers(decide: webhook_handler.Decide) -> tuple[webhook_handler.ReviewHandler, Any]:
    registry = prometheus_client.CollectorRegistry()
    review_handler = webhook_handler.ReviewHandler(
        "validate", decide, metrics.Metrics(registry), clock.FakeClock()
    )

    def count(verdict: str) -> float | None:
        labels = {"webhook": "validate", "verdict": verdict}
        return registry.get_sample_value("dra_gpu_admission_requests_total", labels)

    return review_handler, count


def body_of(obj: Any, kind: tuple[str, str, str] = CLAIM) -> bytes:
    names = dict(zip(("group", "version", "kind"), kind, strict=True))
    request = {"uid": "u", "kind": names, "operation": "CREATE", "object": obj}
    shown = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(shown).encode()


def validating(request: admission_review.ReviewRequest) -> admission_review.ReviewResponse:
    return verdicts.validate(request, World())


def mutating(request: admission_review.ReviewRequest) -> admission_review.ReviewResponse:
    return verdicts.mutate(request, World(), lambda *_: None, extended_resources.Classes())


def test_each_answer_is_counted_by_its_verdict() -> None:
    answer, count = answers(validating)
    status, body = answer(body_of(WRONG))
    assert (status, json.loads(body)["response"]["allowed"]) == (200, False)
    assert answer(b"{")[0] == 400
    assert json.loads(answer(body_of(objects.a_claim("one")))[1])["response"]["allowed"]
    assert (count("refused"), count("unreadable"), count("allowed")) == (1, 1, 1)


def test_an_internal_error_is_counted_and_left_to_the_failure_policy() -> None:
    def decide(_: admission_review.ReviewRequest) -> admission_review.ReviewResponse:
        raise ZeroDivisionError

    answer, count = answers(decide)
    with pytest.raises(ZeroDivisionError):
        answer(body_of({}))
    assert count("failed") == 1


@pytest.mark.parametrize("depth", range(100, 1000, 50))
def test_nesting_is_no_failure_however_deep(depth: int) -> None:
    entry: Any = {"opaque": {"driver": "gpu.ration.dev", "parameters": {"sharing": 1}}}
    claim = objects.a_claim("one", config=[entry])
    text = body_of(claim).replace(b'"sharing": 1', b'"sharing": ' + b"[" * depth + b"]" * depth)
    answer, _ = answers(validating)
    status, body = answer(text)
    assert status == 400 or not json.loads(body)["response"]["allowed"]


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["spec", "devices", "config", "opaque", "driver", "parameters", "requests", "metadata",
             "containers", "initContainers", "resources", "limits", "nvidia.com/gpu", "claims",
             "resourceClaims", "name", "exactly", "firstAvailable", "labels", "selectors", "cel"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip
TEMPLATE = ("resource.k8s.io", "v1beta1", "ResourceClaimTemplate")
CLASS = ("resource.k8s.io", "v1", "DeviceClass")


@given(JSON, st.sampled_from([CLAIM, POD, TEMPLATE, CLASS]))
@settings(max_examples=400)
def test_no_object_whatsoever_is_a_failure(obj: Any, kind: tuple[str, str, str]) -> None:
    for decision in (validating, mutating):
        answer, count = answers(decision)
        for entry in (obj, {"spec": obj}, {"spec": {"devices": obj}}, {"spec": {"spec": obj}}):
            status, body = answer(body_of(entry, kind))
            assert status in {200, 400}
            assert status == 400 or "allowed" in json.loads(body)["response"]
        assert count("failed") == 0


def test_a_patch_that_is_answered_is_the_conversions() -> None:
    texts: list[str] = []
    answer, _ = answers(
        lambda request: verdicts.mutate(
            request,
            World(),
            lambda _, template: texts.append(template.name),
            extended_resources.Classes(),
        )
    )
    _, body = answer(body_of(GPU_POD, POD))
    patch = json.loads(base64.b64decode(json.loads(body)["response"]["patch"]))
    assert patch == [dict(entry) for entry in extended_resources.convert(GPU_POD).patch]

from typing import Any

import pytest

from driver import names
from driver.resources.dra import device_classes, slices
from driver.scheduling.allocator import types as allocator_types
from driver.webhook import admission_review
from driver.webhook.validation import claims as validation_claims
from driver.webhook.validation import configs, hardware
from tests.support import allocation, snapshots
from tests.support.builders import objects
from tests.unit.webhook.cluster import CLASSES, KNOWN, MIG, MPS, SLICE, SLICED

Raw = dict[str, Any]
LIMITED = {"strategy": "MPS", "mps": {"pinnedMemory": "4Gi"}}
PLAIN_MPS = {"strategy": "MPS", "mps": {"priority": "BelowNormal"}}
TURNS = {"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}}


def a_kind(kind: str = "ResourceClaim", version: str = "v1") -> admission_review.ObjectKind:
    return admission_review.ObjectKind("resource.k8s.io", version, kind)


def said(
    obj: Raw,
    kind: admission_review.ObjectKind | None = None,
    cluster_facts: configs.ClusterFacts = KNOWN,
) -> Any:
    return validation_claims.check(kind or a_kind(), obj, cluster_facts)


def a_request(device_class: str, name: str = "gpu", count: int = 1, **more: Any) -> Raw:
    return objects.a_request(name, count, deviceClassName=device_class, **more)


def of_claim(*requests: Raw, config: list[Raw], cluster_facts: configs.ClusterFacts = KNOWN) -> Any:
    return said(objects.a_claim("one", *requests, config=config), cluster_facts=cluster_facts)


def problem(*requests: Raw, config: list[Raw]) -> str:
    (result,) = of_claim(*requests, config=config).problems
    return str(result)


def test_a_wrong_field_is_named_by_its_whole_path_with_a_hint() -> None:
    wrong = objects.a_config(sharing={"strategy": "MPS", "mps": {"pinedMemory": "1Gi"}})
    claim = objects.a_claim("one", config=[objects.a_config(), wrong])
    time = "devices.config[1].opaque.parameters.sharing.mps.pinedMemory: is not a field"
    hint = "(did you mean pinnedMemory?)"
    assert said(claim).problems == (f"spec.{time} {hint}",)
    template = {"spec": {"spec": claim["spec"]}}
    kind = a_kind("ResourceClaimTemplate")
    assert said(template, kind).problems == (f"spec.spec.{time} {hint}",)


def test_the_other_makers_names_are_translated_both_ways() -> None:
    theirs = objects.a_config(sharing={"strategy": "MPS", "mpsConfig": {}})
    assert "here it is mps" in problem(config=[theirs])
    ours = objects.a_config(sharing={"strategy": "MPS", "mps": {}})
    ours["opaque"]["parameters"]["apiVersion"] = "resource.nvidia.com/v1beta1"
    assert "in resource.nvidia.com/v1beta1 it is mpsConfig" in problem(config=[ours])


def test_every_wrong_document_is_told() -> None:
    wrong = objects.a_config("Bogus")
    missing = {"opaque": {"driver": names.DRIVER}}
    assert [entry.partition(":")[0] for entry in of_claim(config=[wrong, missing]).problems] == [
        "spec.devices.config[0].opaque.parameters.kind",
        "spec.devices.config[1].opaque.parameters.apiVersion",
    ]


def test_configuration_of_other_drivers_and_other_kinds_is_left_alone() -> None:
    other = {"opaque": {"driver": "other.dev", "parameters": ["anything"]}}
    assert of_claim(config=[other]) == validation_claims.NOTHING
    wrong = objects.a_claim("one", config=[objects.a_config("Bogus")])
    assert said(wrong, admission_review.ObjectKind("", "v1", "Pod")) == validation_claims.NOTHING
    assert (
        said(wrong, admission_review.ObjectKind("other.dev", "v1", "ResourceClaim"))
        == validation_claims.NOTHING
    )


def test_namespaces_may_meet_by_the_class_only() -> None:
    crossing = objects.a_config(crossNamespace=True)
    assert problem(config=[crossing]).startswith(
        "spec.devices.config[0].opaque.parameters.crossNamespace: is for DeviceClasses"
    )
    assert (
        said(objects.a_class(config=[crossing]), a_kind("DeviceClass")) == validation_claims.NOTHING
    )


@pytest.mark.parametrize(
    "words", ["spread", "topology, pack", "", " ", "spread,spread", "best", "pack,", "Pack", "a b"]
)
def test_the_policies_of_a_class_are_judged_as_the_allocator_judges_them(words: str) -> None:
    raw = objects.a_class("one")
    raw["metadata"]["annotations"] = {names.POLICIES_ANNOTATION: words}
    problems = said(raw, a_kind("DeviceClass")).problems
    view = snapshots.view(objects.a_slice("node-a", 1), found_classes=[device_classes.parse(raw)])
    claim = objects.claim("c", objects.a_request("r", 1, deviceClassName="one"))
    answer = allocation.decide(view, claim)
    if isinstance(answer, allocator_types.Placement):
        assert problems == ()
    else:
        (text,) = problems
        assert text.removeprefix("metadata.annotations[ration.dev/policies]: ") in answer.detail


def test_a_class_is_told_of_its_policies_and_its_configuration_at_once() -> None:
    raw = objects.a_class("one", config=[objects.a_config("Bogus")])
    raw["metadata"]["annotations"] = {names.POLICIES_ANNOTATION: "best"}
    assert [entry.partition(":")[0] for entry in said(raw, a_kind("DeviceClass")).problems] == [
        "metadata.annotations[ration.dev/policies]",
        "spec.config[0].opaque.parameters.kind",
    ]


def test_the_annotation_says_nothing_of_a_claim() -> None:
    claim = objects.a_claim("one")
    claim["metadata"]["annotations"] = {names.POLICIES_ANNOTATION: "best"}
    assert said(claim) == validation_claims.NOTHING


def test_a_key_that_stands_twice_is_refused() -> None:
    claim = objects.a_claim("one", config=[objects.a_config()])
    doubled = admission_review.DuplicateKey(
        claim["spec"]["devices"]["config"][0]["opaque"]["parameters"]
    )
    doubled.key = "kind"
    claim["spec"]["devices"]["config"][0]["opaque"]["parameters"] = doubled
    (text,) = said(claim).problems
    assert text.startswith("spec.devices.config[0].opaque.parameters.kind: is there twice")


@pytest.mark.parametrize(
    ("device_class", "sharing", "words"),
    [
        (SLICED, PLAIN_MPS, "is shared by time-slicing, and the configuration"),
        (MPS, TURNS, "is shared by mps, and the configuration"),
        (MPS, LIMITED, "has a memory limit, for devices of one claim"),
    ],
)
def test_a_strategy_that_the_class_does_not_have_is_refused(
    device_class: str, sharing: Raw, words: str
) -> None:
    entry = objects.a_config(sharing=sharing)
    assert words in problem(a_request(device_class), config=[entry])
    by_selector = a_request(names.CLASS_GPU)
    by_selector["exactly"]["deviceClassName"] = "unheard-of"
    assert of_claim(by_selector, config=[entry]).problems == ()


def test_a_kind_that_names_a_request_for_another_is_refused() -> None:
    entry = objects.a_config("GpuConfig", "gpu")
    assert "request gpu got a device for MigDeviceConfig" in problem(a_request(MIG), config=[entry])
    assert of_claim(a_request(MIG), config=[objects.a_config()]) == validation_claims.NOTHING


def test_an_unknown_class_is_a_warning() -> None:
    claim = of_claim(a_request("theirs"), config=[objects.a_config(sharing=PLAIN_MPS)])
    assert claim.problems == ()
    assert "depends on what class theirs gives it" in claim.warnings[0]


def test_two_kinds_of_configuration_for_a_request_conflict() -> None:
    both = [objects.a_config("GpuConfig", "gpu"), objects.a_config("MigDeviceConfig", "gpu")]
    assert len(of_claim(a_request("theirs"), config=both).problems) == 1


def test_a_satisfiable_alternative_is_enough() -> None:
    ways = [
        objects.a_way("small", deviceClassName=SLICED),
        objects.a_way("large", deviceClassName=names.CLASS_GPU),
    ]
    several = objects.first_available("gpu", *ways)
    claim = of_claim(several, config=[objects.a_config(sharing=LIMITED)])
    assert claim.problems == ()
    assert "shared by time-slicing" in claim.warnings[0]
    only = objects.first_available("gpu", *ways[:1])
    assert len(of_claim(only, config=[objects.a_config(sharing=LIMITED)]).problems) == 1


def test_requests_of_v1beta1_have_their_fields_in_themselves() -> None:
    flat = {"name": "gpu", "deviceClassName": SLICED}
    claim = objects.a_claim("one", flat, config=[objects.a_config(sharing=PLAIN_MPS)])
    (text,) = said(claim, a_kind(version="v1beta1")).problems
    assert "request gpu is for mps" in text


@pytest.mark.parametrize(
    ("requests", "mps", "words"),
    [
        ([a_request(names.CLASS_GPU)], {"pinnedMemory": "12k"}, "is 12k; expected 1Mi at least"),
        (
            [a_request(names.CLASS_GPU)],
            {"pinnedMemoryPerDevice": {"1": "1Gi"}},
            "1 is no device of the claim",
        ),
        ([a_request(names.CLASS_GPU, count=2)], {"pinnedMemoryPerDevice": {"1": "1Gi"}}, ""),
        ([a_request(names.CLASS_GPU, adminAccess=True)], {"pinnedMemory": "12k"}, ""),
    ],
)
def test_limits_of_a_claims_own_daemon_are_what_its_devices_can_have(
    requests: list[Raw], mps: Raw, words: str
) -> None:
    claim = of_claim(*requests, config=[objects.a_config(sharing={"strategy": "MPS", "mps": mps})])
    assert words in " ".join(claim.problems)
    assert bool(claim.problems) == bool(words)


def test_two_mig_devices_have_no_daemon_in_common() -> None:
    entry = objects.a_config("MigDeviceConfig", sharing={"strategy": "MPS"})
    assert "a MIG device alone" in problem(a_request(MIG, count=2), config=[entry])


def test_unknown_daemon_limits_are_a_warning() -> None:
    by_uuid = {"strategy": "MPS", "mps": {"pinnedMemoryPerDevice": {"GPU-1": "1Gi"}}}
    claim = of_claim(config=[objects.a_config(sharing=by_uuid)])
    assert claim.problems == ()
    assert "only where the claim gets that very device" in claim.warnings[0]
    places = {"strategy": "MPS", "mps": {"pinnedMemoryPerDevice": {"7": "1Gi"}}}
    every = a_request(names.CLASS_GPU, allocationMode="All")
    assert (
        "known only once" in of_claim(every, config=[objects.a_config(sharing=places)]).warnings[0]
    )


def test_limits_beyond_all_hardware_are_warned_of_and_not_refused() -> None:
    huge = {"strategy": "MPS", "mps": {"pinnedMemory": "200Gi"}}
    claim = of_claim(config=[objects.a_config(sharing=huge)])
    assert (claim.problems, len(claim.warnings)) == ((), 1)
    assert "200Gi of memory is more than any whole GPU" in claim.warnings[0]
    assert "80Gi at most" in claim.warnings[0]
    request = a_request(MPS, capacity={"requests": {"memory": "90Gi"}})
    assert len(of_claim(request, config=[]).warnings) == 1
    blind = configs.ClusterFacts(names.DRIVER, CLASSES)
    assert of_claim(request, config=[], cluster_facts=blind) == validation_claims.NOTHING


@pytest.mark.parametrize(("newest", "warned"), [(550, True), (580, False), (0, False)])
def test_multi_user_mps_warns_when_no_nodes_driver_supports_it(
    newest: int, *, warned: bool
) -> None:
    requested = {"strategy": "MPS", "mps": {"multiUser": True}}
    cluster_facts = configs.ClusterFacts(
        names.DRIVER, CLASSES, hardware.Hardware(newest_driver=newest)
    )
    for request in (a_request(MPS), a_request(names.CLASS_GPU)):
        claim = of_claim(
            request, config=[objects.a_config(sharing=requested)], cluster_facts=cluster_facts
        )
        assert claim.problems == ()
        assert [("driver 550; expected 580" in warning) for warning in claim.warnings] == [
            True
        ] * warned


def test_a_class_is_measured_by_its_own_selectors() -> None:
    obj = {**objects.a_class(MPS), "spec": {"config": [objects.a_config(sharing=TURNS)]}}
    assert said(obj, a_kind("DeviceClass")).problems == ()
    expression = CLASSES[MPS].selectors[0]
    obj["spec"]["selectors"] = [{"cel": {"expression": expression}}]
    assert "is shared by mps" in said(obj, a_kind("DeviceClass")).problems[0]


def test_configuration_of_a_class_counts_for_its_claims() -> None:
    raw = objects.a_class("turns", config=[objects.a_config(sharing=TURNS)])
    cluster_facts = configs.ClusterFacts(names.DRIVER, {"turns": device_classes.parse(raw)})
    request = a_request("turns", capacity={"requests": {"memory": "1Gi"}})
    assert of_claim(request, config=[], cluster_facts=cluster_facts) == validation_claims.NOTHING
    mig = [objects.a_config("MigDeviceConfig", "gpu")]
    assert "request gpu" in of_claim(request, config=mig, cluster_facts=cluster_facts).problems[0]


@pytest.mark.parametrize(
    "obj",
    [
        {"spec": 3},
        {"spec": {"devices": {"config": 3}}},
        {"spec": {"devices": {"config": [3]}}},
        {"spec": {"devices": {"config": [{"opaque": []}]}}},
        {"spec": {"devices": {"config": [{"opaque": {"driver": 3}}]}}},
        {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"count": "2"}}]}}},
    ],
)
def test_a_field_of_a_wrong_type_is_a_problem_and_no_failure(obj: Raw) -> None:
    assert len(said(obj).problems) == 1


def test_the_largest_that_is_published_is_found_among_slices() -> None:
    part = objects.a_device("part", capacity={"memory": {"value": "10Gi"}})
    part["attributes"]["driverVersion"] = {"version": "570.86.10"}
    mine = slices.parse(objects.a_slice("node-a", [objects.with_values(part, type="mig")]))
    whole = slices.parse(objects.a_slice("node-b", 2))
    other = slices.parse(objects.a_slice("node-c", 2, driver="other.dev"))
    assert hardware.slice_hardware(other, names.DRIVER) == hardware.UNKNOWN
    max_hardware = hardware.max_hardware(
        hardware.slice_hardware(item, names.DRIVER) for item in (mine, whole)
    )
    assert max_hardware == hardware.Hardware(80 << 30, 10 << 30, 570)


def needs(isolation: str, *requests: str) -> Raw:
    return objects.a_config("SliceConfig", *requests, isolation=isolation)


@pytest.mark.parametrize("isolation", ["hardware", "limits", "none"])
def test_a_part_by_need_accepts_any_isolation(isolation: str) -> None:
    request = a_request(SLICE, count=2, capacity={"requests": {"memory": "20Gi"}})
    assert of_claim(request, config=[needs(isolation)]) == validation_claims.NOTHING


@pytest.mark.parametrize(
    ("device_class", "isolation", "words"),
    [
        (SLICED, "limits", "is shared by time-slicing"),
        (SLICED, "hardware", "asks for isolation: hardware"),
        (MPS, "hardware", "is shared by mps"),
        (names.CLASS_GPU, "none", "request gpu got a device that is no part of one"),
    ],
)
def test_an_isolation_that_the_class_does_not_have_is_refused(
    device_class: str, isolation: str, words: str
) -> None:
    assert words in problem(a_request(device_class), config=[needs(isolation, "gpu")])
    selectors = {"selectors": [{"cel": {"expression": CLASSES[device_class].selectors[0]}}]}
    obj = {**objects.a_class("one"), "spec": {**selectors, "config": [needs(isolation)]}}
    assert said(obj, a_kind("DeviceClass")).problems


def test_a_wrong_word_for_isolation_is_named_by_its_path_with_a_hint() -> None:
    time = "spec.devices.config[0].opaque.parameters"
    assert problem(config=[needs("some")]).startswith(f"{time}.isolation: ")
    misspelt = objects.a_config("SliceConfig", isolaton="none")
    assert "(did you mean isolation?)" in problem(config=[misspelt])


def test_isolation_of_only_some_parts_is_a_warning() -> None:
    mps = objects.a_config("GpuConfig", "gpu", sharing=PLAIN_MPS)
    claim = of_claim(a_request(SLICE), config=[mps])
    assert not claim.problems
    assert "strategy MPS depends on what class gpu-slice.ration.dev gives it" in claim.warnings[0]


def test_a_part_by_need_that_only_hardware_isolates_is_judged_as_a_mig_device() -> None:
    entry = objects.a_config("MigDeviceConfig", sharing={"strategy": "MPS"})
    config = [needs("hardware"), entry]
    assert of_claim(a_request(SLICE), config=config) == validation_claims.NOTHING
    assert "expected a MIG device alone" in problem(a_request(SLICE, count=2), config=config)

import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver import errors
from driver.resources import extended_resources
from driver.resources.dra import requests as dra_requests
from tests.fakes.apiserver import patches

Raw = dict[str, Any]
MIRROR = {"kubernetes.io/config.mirror": "hash"}
GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"


def a_container(name: str = "main", more: Raw | None = None, **limits: Any) -> Raw:
    """Resources by their last part: `gpu=1` is `nvidia.com/gpu: 1`."""
    amounts = {f"nvidia.com/{key}": value for key, value in {**limits, **(more or {})}.items()}
    return {"name": name, "resources": {"limits": amounts, "requests": dict(amounts)}}


def a_sidecar(name: str, **limits: Any) -> Raw:
    return {**a_container(name, **limits), "restartPolicy": "Always"}


def a_pod(*containers: Raw, init: Any = (), **spec: Any) -> Raw:
    pod: Raw = {"metadata": {"name": "web"}, "spec": {"containers": list(containers), **spec}}
    if init:
        pod["spec"]["initContainers"] = list(init)
    return pod


def converted(pod: Raw) -> Raw:
    previous = copy.deepcopy(pod)
    conversion = extended_resources.convert(pod)
    assert pod == previous
    return patches.json_patch(pod, [dict(entry) for entry in conversion.patch])


def claims_of(pod: Raw) -> dict[str, list[str]]:
    """Containers with the names of their claims."""
    spec = pod["spec"]
    return {
        entry["name"]: [claim["name"] for claim in entry["resources"].get("claims", ())]
        for entry in (*spec.get("initContainers", ()), *spec["containers"])
    }


def exactly(pod: Raw) -> Raw:
    """Return what the one template of a pod asks, as the allocator reads it."""
    (template,) = extended_resources.convert(pod).templates
    (request,) = template.spec["devices"]["requests"]  # type: ignore[index]
    return dict(request["exactly"])


def test_a_limit_becomes_a_claim_of_a_template() -> None:
    pod = a_pod(a_container(gpu="2"))
    pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1"
    (template,) = extended_resources.convert(pod).templates
    after = converted(pod)
    assert after["spec"] == {
        "containers": [
            {
                "name": "main",
                "resources": {
                    "limits": {"cpu": "1"},
                    "requests": {},
                    "claims": [{"name": "ration-0"}],
                },
            }
        ],
        "resourceClaims": [{"name": "ration-0", "resourceClaimTemplateName": template.name}],
    }
    assert after["metadata"] == {
        "name": "web",
        "labels": {"ration.dev/converted": "true"},
        "annotations": {"ration.dev/converted-from": "main: nvidia.com/gpu=2"},
    }
    assert exactly(pod) == {
        "deviceClassName": "gpu.ration.dev",
        "allocationMode": "ExactCount",
        "count": 2,
    }


def test_a_share_is_shares_of_one_time_sliced_gpu() -> None:
    result = exactly(a_pod(a_container("main", {"gpu.shared": 3})))
    assert (result["deviceClassName"], result["count"]) == ("gpu-timeslice.ration.dev", 1)
    assert result["capacity"] == {"requests": {"shares": "3"}}


@pytest.mark.parametrize(
    ("resource", "profile"),
    [
        ("mig-1g.10gb", "1g.10gb"),
        ("mig-1g.10gb.me", "1g.10gb+me"),
        ("mig-1g.24gb.me.all", "1g.24gb+me.all"),
        ("mig-4g.96gb.gfx", "4g.96gb+gfx"),
        ("mig-4g.96gb-me", "4g.96gb-me"),
    ],
)
def test_a_part_is_one_of_its_profile(resource: str, profile: str) -> None:
    result = exactly(a_pod(a_container("main", {resource: 1})))
    text = f'device.attributes["gpu.ration.dev"].profile == "{profile}"'
    assert result["selectors"] == [{"cel": {"expression": text}}]
    assert result["deviceClassName"] == "gpu-mig.ration.dev"


@pytest.mark.parametrize(
    "resource",
    ["mig-1c.3g.20gb", "mig-1g.10gb.shared", "mig-", "mig-1g", "gpus", "mig-1g.10gb\n", "hostdev"],
)
def test_unknown_resources_are_left_unconverted(resource: str) -> None:
    assert (
        extended_resources.convert(a_pod(a_container("main", {resource: 1})))
        == extended_resources.NOTHING
    )


def test_a_converted_pod_is_left_as_it_is() -> None:
    after = converted(a_pod(a_container(gpu=1), init=[a_container("load", gpu=1)]))
    assert extended_resources.convert(after) == extended_resources.NOTHING


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(a_container()),
        a_pod(a_container(gpu="0")),
        a_pod(a_container(gpu=1), nodeName="node-a"),
        {**a_pod(a_container(gpu=1)), "metadata": {"annotations": MIRROR}},
        {},
    ],
)
def test_pods_that_cannot_or_need_not_be_converted_are_left_alone(pod: Raw) -> None:
    assert extended_resources.convert(pod) == extended_resources.NOTHING


def test_containers_that_run_beside_each_other_have_claims_of_their_own() -> None:
    pod = a_pod(
        a_container("one", gpu=1),
        a_container("two", gpu=1),
        a_container("none"),
        init=[a_sidecar("side", gpu=1)],
    )
    assert claims_of(converted(pod)) == {
        "side": ["ration-0"],
        "one": ["ration-1"],
        "two": ["ration-2"],
        "none": [],
    }
    assert len(extended_resources.convert(pod).templates) == 1


def test_init_containers_use_what_an_app_container_will_have() -> None:
    steps = [a_container("fetch", gpu=2), a_container("load", gpu=2), a_container("odd", gpu=1)]
    side = a_sidecar("side", gpu=1)
    pod = a_pod(a_container("main", gpu=2), init=[*steps, side, a_container("late", gpu=1)])
    result = claims_of(converted(pod))
    assert result["fetch"] == result["load"] == result["main"] == ["ration-1"]
    assert result["odd"] == result["late"] == ["ration-2"]
    assert result["side"] == ["ration-0"]


def test_claims_that_a_pod_has_already_stay_and_their_names_are_not_taken() -> None:
    pod = a_pod(
        a_container(gpu=1),
        resourceClaims=[{"name": "ration-0", "resourceClaimName": "mine"}],
    )
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "ration-0"}]
    pod["metadata"] = {"labels": {"app": "web"}, "annotations": {"a": "b"}}
    after = converted(pod)
    assert claims_of(after) == {"main": ["ration-0", "ration-1"]}
    assert [resource_claim["name"] for resource_claim in after["spec"]["resourceClaims"]] == [
        "ration-0",
        "ration-1",
    ]
    assert after["metadata"]["labels"] == {"app": "web", "ration.dev/converted": "true"}
    assert set(after["metadata"]["annotations"]) == {"a", "ration.dev/converted-from"}


def test_several_kinds_in_one_container_are_one_claim() -> None:
    pod = a_pod(a_container("main", {"gpu": 1, "mig-1g.10gb": 2, "mig-1g.10gb.me": 1}))
    (template,) = extended_resources.convert(pod).templates
    assert template.name.startswith("ration-mixed-")
    claim_spec = dra_requests.parse(template.spec["devices"])  # type: ignore[arg-type]
    assert [(request.name, request.count) for request in claim_spec.requests] == [
        ("gpu", 1),
        ("mig-1", 2),
        ("mig-2", 1),
    ]


@pytest.mark.parametrize(
    ("limits", "requests", "words"),
    [
        ({GPU: "2"}, {GPU: "1"}, f"limits[{GPU}]: is 2, and the request is 1"),
        ({}, {GPU: "1"}, f"requests[{GPU}]: stands without a limit"),
        ({GPU: "500m"}, {GPU: "500m"}, "is 500m; expected a whole number, 32 at most"),
        ({GPU: "-1"}, {}, "is -1; expected a whole number"),
        ({GPU: "33"}, {}, "is 33; expected a whole number, 32 at most"),
        ({GPU: "many"}, {}, "'many' is not a quantity"),
        ({GPU: [1]}, {}, "is not a quantity"),
        ({GPU: 20, "nvidia.com/mig-1g.10gb": 20}, {}, "32 devices a container at most"),
        ({SHARED: "1.5"}, {}, "a whole number, 1024 at most"),
    ],
)
def test_resources_without_an_equivalent_are_refused_with_the_field(
    limits: Raw, requests: Raw, words: str
) -> None:
    pod = a_pod({"name": "main", "resources": {"limits": limits, "requests": requests}})
    with pytest.raises(errors.BadInput) as raised:
        extended_resources.convert(pod)
    assert words in str(raised.value)
    assert raised.value.location.startswith("spec.containers[0].resources.")


def test_equal_amounts_may_be_written_in_two_ways() -> None:
    resources = {"limits": {GPU: "1k"}, "requests": {GPU: 1000}}
    with pytest.raises(errors.BadInput, match="is 1k; expected"):
        extended_resources.convert(a_pod({"name": "main", "resources": resources}))
    resources = {"limits": {GPU: "1"}, "requests": {GPU: 1}}
    assert extended_resources.convert(a_pod({"name": "main", "resources": resources})).templates


def test_equal_requests_share_one_claim_template() -> None:
    def of(*containers: Raw) -> str:
        (template,) = extended_resources.convert(a_pod(*containers)).templates
        return template.name

    assert of(a_container("a", gpu=1)) == of(a_container("b", gpu="1"), a_container("c", gpu=1))
    assert of(a_container(gpu=1)) != of(a_container(gpu=2))
    other = extended_resources.Classes("gpu.nvidia.com", "gpu.nvidia.com", "ts", "mig.nvidia.com")
    (elsewhere,) = extended_resources.convert(a_pod(a_container(gpu=1)), other).templates
    assert elsewhere.name != of(a_container(gpu=1))


IMPLICIT = "deviceclass.resource.kubernetes.io/example"
LABELLED = extended_resources.Classes(
    labelled={"example.com/gpu": "example", IMPLICIT: "example", SHARED: "example-shares"}
)


def requests_of(template: extended_resources.Template) -> list[tuple[str, str, int]]:
    """Return the name, class and count of each request."""
    devices = dra_requests.parse(template.spec["devices"])  # type: ignore[arg-type]
    raw = {item["name"]: item["exactly"] for item in template.spec["devices"]["requests"]}  # type: ignore[index]
    return [
        (request.name, raw[request.name]["deviceClassName"], request.count)
        for request in devices.requests
    ]


@pytest.mark.parametrize("resource", ["example.com/gpu", IMPLICIT])
def test_both_resources_of_a_labelled_class_become_devices_of_it(resource: str) -> None:
    pod = a_pod({"name": "main", "resources": {"limits": {resource: "2", "cpu": "1"}}})
    conversion = extended_resources.convert(pod, LABELLED)
    (template,) = conversion.templates
    assert template.name.startswith("ration-class-")
    assert requests_of(template) == [("class-0", "example", 2)]
    after = patches.json_patch(pod, [dict(entry) for entry in conversion.patch])
    assert after["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    assert claims_of(after) == {"main": ["ration-0"]}
    assert extended_resources.convert(after, LABELLED) == extended_resources.NOTHING


def test_a_name_of_nvidias_is_of_the_labelled_class_that_has_it() -> None:
    pod = a_pod(a_container("main", {"gpu.shared": 3, "gpu": 1}))
    (template,) = extended_resources.convert(pod, LABELLED).templates
    assert requests_of(template) == [
        ("gpu", "gpu.ration.dev", 1),
        ("class-1", "example-shares", 3),
    ]


def test_init_containers_share_claims_of_a_labelled_class_with_app_containers() -> None:
    def requesting(name: str) -> Raw:
        return {"name": name, "resources": {"limits": {"example.com/gpu": "1"}}}

    sidecar = {**requesting("side"), "restartPolicy": "Always"}
    pod = a_pod(requesting("main"), init=[requesting("load"), sidecar])
    conversion = extended_resources.convert(pod, LABELLED)
    after = patches.json_patch(pod, [dict(item) for item in conversion.patch])
    assert claims_of(after) == {"load": ["ration-1"], "side": ["ration-0"], "main": ["ration-1"]}


def test_devices_of_labelled_classes_count_to_the_limit_of_a_container() -> None:
    limits = {GPU: 1, "example.com/gpu": 32}
    pod = a_pod({"name": "main", "resources": {"limits": limits}})
    with pytest.raises(errors.BadInput, match="32 devices a container at most"):
        extended_resources.convert(pod, LABELLED)


def test_without_a_class_for_it_a_name_of_nvidias_is_left_alone() -> None:
    classes = extended_resources.Classes(
        whole="", shared="", mig="", labelled={"example.com/gpu": "example"}
    )
    nvidia = a_pod(a_container("main", {"gpu": 1, "gpu.shared": 1, "mig-1g.10gb": 1}))
    assert extended_resources.convert(nvidia, classes) == extended_resources.NOTHING
    resources = {"limits": {GPU: "half", "example.com/gpu": 1}}
    beside = a_pod({"name": "main", "resources": resources})
    (template,) = extended_resources.convert(beside, classes).templates
    assert requests_of(template) == [("class-0", "example", 1)]


AMOUNTS = st.dictionaries(
    st.sampled_from(["gpu", "gpu.shared", "mig-1g.10gb", "mig-3g.40gb", "other"]),
    st.integers(0, 4),
    max_size=3,
)
PODS = st.builds(
    lambda apps, firsts: a_pod(
        *(a_container(f"c{index}", app) for index, app in enumerate(apps)),
        init=[
            a_container(f"i{index}", entry) | ({"restartPolicy": "Always"} if sidecar else {})
            for index, (entry, sidecar) in enumerate(firsts)
        ],
    ),
    st.lists(AMOUNTS, min_size=1, max_size=4),
    st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=4),
)


@given(PODS)
def test_whatever_a_pod_asks_each_container_has_its_amounts_by_one_claim(pod: Raw) -> None:
    conversion = extended_resources.convert(pod)
    after = converted(pod)
    assert extended_resources.convert(after) == extended_resources.NOTHING
    templates = {template.name: template for template in conversion.templates}
    sources = {
        entry["name"]: templates[entry["resourceClaimTemplateName"]]
        for entry in after["spec"].get("resourceClaims", ())
    }
    beside: list[str] = []
    every = (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
    previous = {entry["name"]: entry for entry in every}
    for name, used in claims_of(after).items():
        limits = previous[name]["resources"]["limits"]
        request = {
            key: n for key, n in limits.items() if n and extended_resources.is_convertible(key)
        }
        assert len(used) == bool(request)
        if used:
            requests = dra_requests.parse(sources[used[0]].spec["devices"]).requests  # type: ignore[arg-type]
            devices = sum(request.count for request in requests)
            assert devices == sum(1 if key == SHARED else n for key, n in request.items())
        if name.startswith("c") or previous[name].get("restartPolicy"):
            beside += used
    assert len(beside) == len(set(beside))
    assert {name for used in claims_of(after).values() for name in used} == set(sources)
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name) for name in templates)

from typing import Any

import pytest

from driver import names
from driver.webhook import admission_review
from driver.webhook.validation import opaque, pods
from tests.support.builders import objects
from tests.unit.webhook.cluster import KNOWN, MIG, MPS, SLICED

Raw = dict[str, Any]
OWN = objects.a_config(sharing={"strategy": "MPS"})
KIND = admission_review.ObjectKind("resource.k8s.io", "v1", "ResourceClaim")


def a_claim(device_class: str, config: Any = (), count: int = 1, **more: Any) -> Raw:
    request = objects.a_request("gpu", count, deviceClassName=device_class, **more)
    return objects.a_claim("one", request, config=list(config))


def part(claim: Raw) -> opaque.ConfigPart:
    config_part = opaque.claim_part(KIND, claim)
    assert config_part is not None
    return config_part


def a_pod(*containers: list[Raw], init: Any = (), **sources: str) -> Raw:
    def of(name: str, uses: list[Raw]) -> Raw:
        return {"name": name, "resources": {"claims": uses}}

    return {
        "metadata": {"generateName": "web-"},
        "spec": {
            "initContainers": [of(f"i{index}", uses) for index, uses in enumerate(init)],
            "containers": [of(f"c{index}", uses) for index, uses in enumerate(containers)],
            "resourceClaims": [
                {"name": name, "resourceClaimTemplateName": source}
                if source.startswith("t-")
                else {"name": name, "resourceClaimName": source}
                for name, source in sources.items()
            ],
        },
    }


def uses(*texts: str) -> list[Raw]:
    return [{"name": name} for name in texts]


def said(pod: Raw, **claims: Raw) -> Any:
    return pods.check(pod, {name: part(claim) for name, claim in claims.items()}, KNOWN)


SHARE, WHOLE, SERVED = a_claim(MPS), a_claim(names.CLASS_GPU), a_claim(names.CLASS_GPU, [OWN])


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        (SHARE, SHARE, True),
        (SHARE, WHOLE, True),
        (WHOLE, SHARE, True),
        (SHARE, SERVED, True),
        (SERVED, SERVED, True),
        (SERVED, WHOLE, True),
        (WHOLE, WHOLE, False),
        (WHOLE, a_claim(MIG), False),
        (SHARE, a_claim(SLICED, capacity={"requests": {"memory": "1Gi"}}), True),
        (SHARE, a_claim("unheard-of"), False),
        (a_claim("unheard-of", [OWN]), SHARE, False),
    ],
)
def test_a_container_has_one_daemon_and_no_gpu_outside_it(
    first: Raw, second: Raw, *, refused: bool
) -> None:
    together = a_pod(uses("a", "b"), a="t-a", b="t-b")
    assert bool(said(together, a=first, b=second).problems) is refused
    apart = a_pod(uses("a"), uses("b"), a="t-a", b="t-b")
    assert said(apart, a=first, b=second).problems == ()


def test_the_container_and_what_clashes_are_named() -> None:
    pod = a_pod(uses("a"), init=[uses("a", "b")], a="t-a", b="t-b")
    (text,) = said(pod, a=SHARE, b=WHOLE).problems
    assert text.startswith(
        "container i0 has an MPS share (claim a, request gpu) and a GPU without MPS "
        "(claim b, request gpu): a container may use one MPS daemon"
    )


def test_a_request_for_two_shares_fits_no_container() -> None:
    assert said(a_pod(uses("a"), a="t-a"), a=a_claim(MPS, count=2)).problems
    assert said(a_pod([], a="t-a"), a=a_claim(MPS, count=2)).problems == ()
    everything = a_claim(MPS, allocationMode="All")
    assert said(a_pod(uses("a"), a="t-a"), a=everything).problems == ()


def test_devices_of_one_claim_are_under_its_one_daemon() -> None:
    pod = a_pod(uses("a"), a="t-a")
    assert said(pod, a=a_claim(names.CLASS_GPU, [OWN], count=4)).problems == ()


def test_only_the_requests_that_a_container_names_count() -> None:
    both = objects.a_claim(
        "one",
        objects.a_request("share", deviceClassName=MPS),
        objects.a_request("gpu", deviceClassName=names.CLASS_GPU),
    )
    apart = [{"name": "a", "request": "share"}], [{"name": "a", "request": "gpu"}]
    assert said(a_pod(*apart, a="t-a"), a=both).problems == ()
    assert said(a_pod(uses("a"), a="t-a"), a=both).problems
    assert said(a_pod([*apart[0], *apart[1]], a="t-a"), a=both).problems


def test_a_claim_that_is_named_twice_is_one() -> None:
    assert said(a_pod(uses("a", "b"), a="same", b="same"), a=SHARE, b=SHARE).problems == ()
    assert said(a_pod(uses("a", "b"), a="one", b="other"), a=SHARE, b=SHARE).problems


def test_a_field_that_may_still_change_is_not_refused() -> None:
    several = objects.first_available(
        "gpu",
        objects.a_way("share", deviceClassName=MPS),
        objects.a_way("whole", deviceClassName=names.CLASS_GPU),
    )
    claim = objects.a_claim("one", several)
    assert said(a_pod(uses("a", "b"), a="t-a", b="t-b"), a=claim, b=SHARE).problems == ()


def test_claims_that_are_not_known_are_left_out() -> None:
    pod = a_pod(uses("a", "b"), a="t-a", b="t-b")
    assert said(pod, a=SHARE).problems == ()
    assert [
        (claim_reference.name, claim_reference.kind, claim_reference.source)
        for claim_reference in pods.claim_references(pod)
    ] == [
        ("a", "ResourceClaimTemplate", "t-a"),
        ("b", "ResourceClaimTemplate", "t-b"),
    ]


def test_a_time_sliced_share_without_memory_is_warned_of() -> None:
    pod = a_pod(uses("a"), a="t-a")
    (text,) = said(pod, a=a_claim(SLICED)).warnings
    assert text.startswith("claim a, request gpu: a time-sliced share without an amount of memory")
    limited = a_claim(SLICED, capacity={"requests": {"memory": "4Gi"}})
    assert said(pod, a=limited).warnings == ()
    assert said(pod, a=SHARE).warnings == ()


@pytest.mark.parametrize("spec", [3, {"containers": 3}, {"resourceClaims": [{"name": 3}]}])
def test_a_pod_that_cannot_be_read_is_the_api_servers_to_tell(spec: Any) -> None:
    assert said({"metadata": {}, "spec": spec}) == opaque.Findings()

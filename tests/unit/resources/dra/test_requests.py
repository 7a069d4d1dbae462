import copy

import pytest

from driver import errors
from driver.resources.dra import requests as dra_requests
from tests.support.builders import objects


def read(*requests: objects.Raw, **more: object) -> dra_requests.ClaimSpec:
    return dra_requests.parse({"requests": list(requests), **more})


def test_a_request_is_read_with_all_that_it_asks() -> None:
    (request,) = read(
        objects.a_request(
            "gpu",
            3,
            "true",
            adminAccess=True,
            tolerations=[{"key": "sick", "operator": "Exists"}],
            capacity={"requests": {"memory": "20Gi"}},
        )
    ).requests
    assert (request.name, request.device_class, request.count) == ("gpu", "gpu.ration.dev", 3)
    assert (request.selectors, request.admin_access, request.all_devices) == (
        ("true",),
        True,
        False,
    )
    assert [toleration.key for toleration in request.tolerations] == ["sick"]
    assert {name: minimum.text for name, minimum in request.minimums.items()} == {"memory": "20Gi"}
    assert request.alternatives_or_self == (request,)


def test_all_is_everything() -> None:
    (request,) = read(objects.a_request(allocationMode="All")).requests
    assert request.all_devices


def test_without_a_count_one_is_asked() -> None:
    (request,) = read({"name": "gpu", "exactly": {"deviceClassName": "x"}}).requests
    assert request.count == 1


def test_alternatives_are_ways_in_their_order() -> None:
    (request,) = read(
        objects.first_available("gpu", objects.a_way("b", 2), objects.a_way("a"))
    ).requests
    assert [(way.name, way.count) for way in request.alternatives_or_self] == [
        ("gpu/b", 2),
        ("gpu/a", 1),
    ]


def test_constraints_agree_or_differ() -> None:
    spec = read(
        objects.a_request(),
        constraints=[objects.matching("a/b", "gpu"), objects.differing("c/d")],
    )
    assert spec.constraints == (
        dra_requests.Constraint("a/b", distinct=False, requests=("gpu",)),
        dra_requests.Constraint("c/d", distinct=True),
    )


def test_a_request_that_is_named_stands_for_its_alternatives() -> None:
    assert dra_requests.names_request(("gpu",), "gpu/big")
    assert dra_requests.names_request(("gpu/big",), "gpu/big")
    assert not dra_requests.names_request(("gpu/big",), "gpu")
    assert not dra_requests.names_request(("gpu/big",), "gpu/small")


@pytest.mark.parametrize(
    ("raw", "beyond"),
    [
        (objects.a_request(derivedAttributes=[{"name": "x"}]), ("derivedAttributes",)),
        (objects.a_request(allocationMode="Some"), ("allocationMode: Some",)),
        ({"name": "gpu", "someOf": [{}]}, ("someOf",)),
        ({"name": "gpu"}, ("exactly",)),
    ],
)
def test_unsupported_request_fields_are_named(raw: objects.Raw, beyond: tuple[str, ...]) -> None:
    (request,) = read(raw).requests
    assert request.unsupported == beyond


def test_an_empty_field_that_is_not_known_says_nothing() -> None:
    (request,) = read(objects.a_request(derivedAttributes=[], other=None)).requests
    assert request.unsupported == ()


def test_unsupported_fields_of_claims_and_constraints_are_named() -> None:
    odd = {"matchAttribute": "a/b", "matchExpression": "x"}
    spec = read(constraints=[odd, {"requests": ["gpu"]}], extendedResource="x")
    assert spec.unsupported == (
        "spec.devices.extendedResource",
        "spec.devices.constraints[0].matchExpression",
        "spec.devices.constraints[1]",
    )


def test_equal_claims_share_one_object() -> None:
    raw = {"requests": [objects.a_request()]}
    assert dra_requests.parse(raw) is dra_requests.parse(copy.deepcopy(raw))
    assert dra_requests.parse(raw) is not read(objects.a_request(count=2))


@pytest.mark.parametrize(
    ("raw", "location"),
    [
        ({"exactly": {}}, "requests[0].name"),
        ({"name": "gpu", "exactly": []}, "requests[0].exactly"),
        ({"name": "gpu", "exactly": {"count": "2"}}, "requests[0].exactly.count"),
        (objects.first_available("gpu", {"count": 1}), "requests[0].firstAvailable[0].name"),
        (objects.a_request(capacity={"requests": {"memory": "x"}}), "requests[0].exactly.capacity"),
    ],
)
def test_an_invalid_request_is_reported_with_its_field(raw: objects.Raw, location: str) -> None:
    with pytest.raises(errors.BadInput, match=r"^spec\.devices\." + location.replace("[", r"\[")):
        read(raw)


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_configuration_that_is_nested_too_deeply_is_not_weighed_and_the_rest_is_read() -> None:
    """It is a user's own text, and claims of others are read by the same thread."""
    deep = {"opaque": {"driver": "other.dev", "parameters": {"a": nested(900)}}}
    plain = objects.a_config()
    claim_spec = read(objects.a_request(), config=[plain, deep])
    assert [config.opaque for config in claim_spec.configs] == [plain["opaque"]]
    (beyond,) = claim_spec.unsupported
    assert beyond.startswith("spec.devices.config[1]")
    assert len(claim_spec.requests) == 1


def test_other_values_nested_too_deeply_are_refused() -> None:
    with pytest.raises(errors.BadInput, match="nested"):
        read({"name": "gpu", "exactly": {"count": nested(2000)}})

from driver import reasons
from driver.resources.cel import selector as cel
from driver.resources.dra import claims
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from tests.support import snapshots
from tests.support.allocation import wants
from tests.support.builders import objects

VIEW = snapshots.fleet({"node-a": 1})
FAILING = 'device.attributes["gpu.ration.dev"].nope == "x"'
NEVER = "false"


def blocked(*results: claims.Claim) -> allocator_types.Unschedulable:
    answer = allocator_requests.parse_requests(VIEW, results)
    assert isinstance(answer, allocator_types.Unschedulable)
    return answer


def test_requests_are_wanted_in_the_order_of_claims_and_theirs() -> None:
    claim = objects.claim("one", objects.a_request("b"), objects.a_request("a"))
    two = objects.claim("two", objects.a_request("c"))
    results = [(want.claim_index, want.subrequests[0].name) for want in wants(VIEW, claim, two)]
    assert results == [(0, "b"), (0, "a"), (1, "c")]


def test_alternatives_are_named_after_their_request_in_their_order() -> None:
    several = objects.first_available("gpu", objects.a_way("big", 8), objects.a_way("small"))
    (want,) = wants(VIEW, objects.claim("c", several))
    assert [way.name for way in want.subrequests] == ["gpu/big", "gpu/small"]
    assert [way.request.count for way in want.subrequests] == [8, 1]


def test_the_selectors_of_the_class_come_before_those_of_the_request() -> None:
    """One that would fail is not evaluated where one before it is false."""
    (device,) = objects.a_parsed_slice("node-a", 1).devices
    view = snapshots.view(found_classes=[objects.device_class("none", NEVER)])
    unlucky = objects.a_request("gpu", 1, FAILING, deviceClassName="none")
    (want,) = wants(view, objects.claim("c", unlucky))
    assert want.subrequests[0].matches(snapshots.DRIVER, device) is False
    (want,) = wants(view, objects.claim("c", objects.a_request("gpu", 1, FAILING)))
    assert isinstance(want.subrequests[0].matches(snapshots.DRIVER, device), cel.EvaluationFailure)


def test_a_missing_class_of_an_alternative_blocks_the_claim() -> None:
    several = objects.first_available(
        "gpu", objects.a_way("a"), objects.a_way("b", deviceClassName="nope")
    )
    answer = blocked(objects.claim("c", several))
    assert answer.blocker is reasons.Reason.DEVICE_CLASS_NOT_FOUND
    assert answer.detail == "claim default/c: request gpu/b names class nope"


def test_thirty_two_devices_are_counted_by_the_least_of_each_alternative() -> None:
    many = objects.first_available("gpu", objects.a_way("a", 40), objects.a_way("b", 2))
    everything = objects.a_request("all", allocationMode="All")
    wants(VIEW, objects.claim("c", many, everything, objects.a_request("rest", 29)))
    answer = blocked(objects.claim("c", many, everything, objects.a_request("rest", 30)))
    assert answer.blocker is reasons.Reason.TOO_MANY_DEVICES
    assert answer.detail == "claim default/c: at most 32 devices a claim"


def test_every_field_that_is_not_weighed_is_named() -> None:
    odd = objects.a_request("gpu", derivedAttributes=[{"name": "x"}])
    raw = objects.a_claim("c", odd, constraints=[{"requests": ["gpu"]}])
    answer = blocked(claims.parse(raw))
    assert answer.blocker is reasons.Reason.NOT_SUPPORTED
    assert answer.detail == (
        "claim default/c: uses spec.devices.constraints[0], gpu.derivedAttributes "
        "(feature gate DRADerivedAttributes)"
    )


def test_configuration_of_a_class_is_read_only_where_the_class_is_asked() -> None:
    wrong = objects.a_config(shape="x")
    broken = objects.device_class("broken", config=[wrong])
    view = snapshots.view(found_classes=[broken])
    assert wants(view, objects.claim())
    answer = allocator_requests.parse_requests(
        view, [objects.claim("c", objects.a_request(deviceClassName="broken"))]
    )
    assert isinstance(answer, allocator_types.Unschedulable)
    assert answer.blocker is reasons.Reason.CONFIG_INVALID
    assert "DeviceClass broken: spec.config[0].opaque.parameters.shape" in answer.detail


def test_class_only_fields_are_refused_in_a_claim() -> None:
    config = [objects.a_config(crossNamespace=True)]
    answer = blocked(objects.claim("c", config=config))
    assert answer.blocker is reasons.Reason.CONFIG_INVALID
    assert "spec.devices.config[0].opaque.parameters" in answer.detail

"""Tests of claims that join GPUs and network cards."""

from driver.resources.dra import claims, requests
from tests.support.builders import joint_claims as joint
from tests.support.builders import objects


def parsed(devices: joint.Raw) -> requests.ClaimSpec:
    claim = joint.a_claim("claim", devices)
    return claims.parse({**claim, "metadata": objects.meta("claim")}).spec


def test_gpus_and_cards_of_a_claim_match_an_attribute_if_one_is_given() -> None:
    spec = parsed(joint.devices(gpus=2, nics=1, match=joint.PCIE_ROOT))
    assert [request.name for request in spec.requests] == ["gpus", "nics"]
    (constraint,) = spec.constraints
    assert (constraint.attribute, constraint.distinct) == (joint.PCIE_ROOT, False)
    assert parsed(joint.devices()).constraints == ()


def test_each_pair_matches_by_itself() -> None:
    spec = parsed(joint.pairs(2))
    assert [constraint.requests for constraint in spec.constraints] == [
        ("gpu-0", "nic-0"),
        ("gpu-1", "nic-1"),
    ]


def test_a_template_makes_the_same_claims() -> None:
    devices = joint.devices()
    template = joint.a_template("pair", devices)
    assert template["spec"]["spec"] == joint.a_claim("pair", devices)["spec"]


def test_a_claim_for_one_class_alone_may_select_devices() -> None:
    (request,) = parsed(joint.only("nic.example.com", 2, "true")).requests
    assert (request.device_class, request.count) == ("nic.example.com", 2)

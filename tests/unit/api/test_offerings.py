from fractions import Fraction
from typing import Any

import pytest

from driver import errors
from driver.api import offerings
from driver.devices import faces
from tests.support.builders.gpus import PLAIN


def of(*rules: dict[str, Any], node: str = "train-1") -> faces.Offering:
    document = {
        "apiVersion": "resource.ration.dev/v1alpha1",
        "kind": "NodeOfferings",
        "rules": list(rules),
    }
    return offerings.read(document, "offerings.yaml").gpu_offering(node, PLAIN)


def test_without_rules_all_but_the_monitor_is_offered_in_eight_shares() -> None:
    assert of() == faces.Offering()
    assert faces.Kind.MONITOR not in of().kinds
    assert (of().mps_shares, of().time_slices) == (8, 8)


def test_each_field_of_a_later_rule_replaces_an_earlier_one() -> None:
    offering = of({"timeSlices": 4, "faces": ["whole"]}, {"timeSlices": 10})
    assert offering.time_slices == 10
    assert offering.kinds == frozenset({faces.Kind.WHOLE})


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({}, True),
        ({"product": ["*H100*"]}, True),
        ({"product": ["*A100*"]}, False),
        ({"pci": ["0000:18:00.0"]}, True),
        ({"uuid": ["GPU-1"], "index": [0]}, True),
        ({"uuid": ["GPU-1"], "index": [1]}, False),
    ],
)
def test_a_rule_is_for_the_gpus_that_all_its_names_fit(
    selector: dict[str, Any], *, fits: bool
) -> None:
    assert (of({"gpus": selector, "mpsShares": 2}).mps_shares == 2) is fits


def test_a_rule_is_for_the_nodes_it_names() -> None:
    rule = {"nodes": ["train-*"], "mig": "static"}
    assert of(rule).mig is faces.MigMode.STATIC
    assert of(rule, node="infer-1").mig is faces.MigMode.DYNAMIC


def test_a_memory_factor_is_exact() -> None:
    assert of({"memoryFactor": 1.1}).memory_factor == Fraction(11, 10)


@pytest.mark.parametrize(
    ("rule", "location"),
    [
        ({"shares": 2}, "rules.0.shares: is not a field"),
        ({"mpsShares": 49}, "rules.0.mpsShares: Input should be less than or equal to 48"),
        ({"faces": ["half"]}, "rules.0.faces.0: Input should be 'whole', 'mig', 'mps'"),
        ({"memoryFactor": 0.5}, "rules.0.memoryFactor: Input should be greater than or equal"),
        ({"gpus": {"index": ["a"]}}, "rules.0.gpus.index.0: Input should be a valid integer"),
        ({"nodes": [""]}, "rules.0.nodes.0: String should have at least 1 character"),
    ],
)
def test_an_invalid_document_is_refused_with_its_field(rule: dict[str, Any], location: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        of(rule)
    assert str(refused.value).startswith(f"offerings.yaml.{location}")

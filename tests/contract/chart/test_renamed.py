"""Former names of the chart's values are refused with the present ones."""

import json

import pytest

from hack.chart import renamed, values, written
from tests.contract.chart import rendered

pytestmark = rendered.BUILDS_HELM


@pytest.mark.parametrize("former", sorted(renamed.VALUES))
def test_a_former_value_is_refused_with_the_present_one(former: str) -> None:
    refusal = rendered.refusal(*rendered.setting(f"{former}=1"))
    assert f"{former} has been renamed: use {renamed.VALUES[former]}" in refusal


def test_a_former_value_that_is_a_list_is_refused_too() -> None:
    refusal = rendered.refusal(*rendered.setting("controller.usual[0].gpus=8"))
    assert "use controller.workloadMix" in refusal


def test_a_former_field_of_a_node_shape_is_refused_with_the_present_one() -> None:
    shape = ("name=h100", "labels.a=b", "gpus=8", "most=4")
    refusal = rendered.refusal(
        *rendered.setting(*(f"controller.nodes.shapes[0].{entry}" for entry in shape))
    )
    assert "controller.nodes.shapes[].most has been renamed: use maxInFlight" in refusal


@pytest.mark.parametrize("present", sorted(renamed.VALUES.values()))
def test_every_present_name_is_a_value(present: str) -> None:
    table = values.defaults()
    for part in present.partition(",")[0].split("."):
        assert part in table
        table = table[part]


def test_former_names_are_marked_as_deprecated_in_the_schema() -> None:
    controller = json.loads(written.schema())["$defs"]["Controller"]["properties"]
    assert controller["usual"]["deprecated"]

import pytest

from driver import errors
from driver.resources import quantities
from driver.resources.dra import capacities
from tests.support.builders import objects

VALUES = {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi"]}
RANGE = {"default": "8Gi", "validRange": {"min": "4Gi", "max": "40Gi", "step": "4Gi"}}
ANY = {"default": "8Gi"}


def capacity(policy: objects.Raw | None = None) -> capacities.Capacity:
    return capacities.parse(
        {"value": "80Gi", **({"requestPolicy": policy} if policy else {})}, "capacity"
    )


@pytest.mark.parametrize(
    ("policy", "question", "consumed"),
    [
        (None, None, "80Gi"),
        (None, "3Gi", "3Gi"),
        (ANY, None, "8Gi"),
        (ANY, "3Gi", "3Gi"),
        (VALUES, None, "10Gi"),
        (VALUES, "1", "10Gi"),
        (VALUES, "10Gi", "10Gi"),
        (VALUES, "11Gi", "20Gi"),
        (VALUES, "41Gi", None),
        (RANGE, None, "8Gi"),
        (RANGE, "1Gi", "4Gi"),
        (RANGE, "4Gi", "4Gi"),
        (RANGE, "4097Mi", "8Gi"),
        (RANGE, "40Gi", "40Gi"),
        (RANGE, "40961Mi", None),
        ({"default": "8Gi", "validRange": {"min": "4Gi"}}, "5Gi", "5Gi"),
        ({"default": "8Gi", "validRange": {"min": "4Gi", "max": "6Gi"}}, "7Gi", None),
        ({"default": "8Gi", "validRange": {"min": "4Gi", "step": "3Gi"}}, "5Gi", "7Gi"),
    ],
)
def test_a_request_takes_what_the_policy_makes_of_it(
    policy: objects.Raw | None, question: str | None, consumed: str | None
) -> None:
    quantity = capacities.consumed_capacity(
        capacity(policy), quantities.parse(question) if question else None
    )
    assert (None if quantity is None else quantity.text) == consumed


def test_rounded_amounts_have_the_form_of_the_step() -> None:
    span = {"min": "1", "max": "100", "step": "250m"}
    quantity = capacities.consumed_capacity(
        capacity({"default": "1", "validRange": span}), quantities.parse("1.3")
    )
    assert quantity is not None
    assert quantity.text == "1500m"


@pytest.mark.parametrize("policy", [None, ANY, VALUES, RANGE])
def test_a_capacity_reads_back_as_it_was_written(policy: objects.Raw | None) -> None:
    assert capacities.parse(capacities.render(capacity(policy)), "x") == capacity(policy)


def test_an_invalid_capacity_is_reported_with_its_field() -> None:
    with pytest.raises(errors.BadInput, match=r"^capacity\.requestPolicy\.default"):
        capacity({"validValues": ["1"]})


@pytest.mark.parametrize(
    ("total", "share", "default", "most"), [(100, 30, "30", "100"), (105, 33, "30", "100")]
)
def test_a_capacity_is_given_out_in_whole_steps(
    total: int, share: int, default: str, most: str
) -> None:
    rounded = capacities.round_up_to_step(total, share, 10, quantities.from_units)
    assert rounded.value.units == total
    assert rounded.policy is not None
    assert rounded.policy.range is not None
    assert rounded.policy.range.maximum is not None
    assert (rounded.policy.default.text, rounded.policy.range.maximum.text) == (
        default,
        most,
    )


def test_a_single_step_is_the_only_amount() -> None:
    rounded = capacities.round_up_to_step(15, 15, 10, quantities.from_units)
    assert rounded.policy is not None
    assert [value.text for value in rounded.policy.values] == ["10"]
    assert capacities.consumed_capacity(rounded, None) == quantities.from_units(10)
    assert capacities.consumed_capacity(rounded, quantities.from_units(11)) is None

from typing import Any

import pytest

from driver.devices import attributes
from driver.resources.dra import attributes as dra_attributes


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"int": 3}, 3),
        ({"bool": True}, True),
        ({"string": "a"}, "a"),
        ({"version": "1.2.3"}, attributes.Version("1.2.3")),
        ({"ints": [1, 2]}, (1, 2)),
        ({"bools": [True, False]}, (True, False)),
        ({"strings": ["a"]}, ("a",)),
        ({"versions": ["1.0.0"]}, (attributes.Version("1.0.0"),)),
    ],
)
def test_values_read_back_as_they_were_written(raw: Any, value: dra_attributes.Value) -> None:
    parsed = dra_attributes.parse(raw)
    assert (parsed, type(parsed)) == (value, type(value))
    assert dra_attributes.render(value) == raw


@pytest.mark.parametrize(
    "raw", [{}, {"float": 1.5}, {"ints": [1, True]}, {"strings": "a"}, {"ints": 1}]
)
def test_an_attribute_of_an_unknown_kind_is_no_value(raw: Any) -> None:
    assert dra_attributes.parse(raw) is None


def test_a_name_is_found_in_full_or_in_its_drivers_own_domain() -> None:
    result = {"numa": 0, "resource.kubernetes.io/pcieRoot": "x"}
    assert dra_attributes.find_attribute(result, "a.com", "a.com/numa") == 0
    assert dra_attributes.find_attribute(result, "a.com", "resource.kubernetes.io/pcieRoot") == "x"
    assert dra_attributes.find_attribute(result, "a.com", "b.com/numa") is None
    assert dra_attributes.find_attribute(result, "a.com", "a.com/") is None
    assert dra_attributes.find_attribute({"a.com/numa": 1, "numa": 0}, "a.com", "a.com/numa") == 1


def test_constraints_compare_elements_with_their_types() -> None:
    assert dra_attributes.constraint_values(1) == dra_attributes.constraint_values((1, 1))
    assert dra_attributes.constraint_values((1, 0)).isdisjoint(
        dra_attributes.constraint_values((True, False))
    )
    assert dra_attributes.constraint_values("1.0.0").isdisjoint(
        dra_attributes.constraint_values(attributes.Version("1.0.0"))
    )
    assert dra_attributes.constraint_values(("a", "b")) >= dra_attributes.constraint_values("b")

from typing import Any

import pytest

from driver.devices import description
from driver.resources import attribute


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"int": 3}, 3),
        ({"bool": True}, True),
        ({"string": "a"}, "a"),
        ({"version": "1.2.3"}, description.Version("1.2.3")),
        ({"ints": [1, 2]}, (1, 2)),
        ({"bools": [True, False]}, (True, False)),
        ({"strings": ["a"]}, ("a",)),
        ({"versions": ["1.0.0"]}, (description.Version("1.0.0"),)),
    ],
)
def test_values_read_back_as_they_were_written(raw: Any, value: attribute.Value) -> None:
    found = attribute.parse(raw)
    assert (found, type(found)) == (value, type(value))
    assert attribute.render(value) == raw


@pytest.mark.parametrize(
    "raw", [{}, {"float": 1.5}, {"ints": [1, True]}, {"strings": "a"}, {"ints": 1}]
)
def test_what_is_of_no_known_kind_is_no_value(raw: Any) -> None:
    assert attribute.parse(raw) is None


def test_a_name_is_found_in_full_or_in_its_drivers_own_domain() -> None:
    found = {"numa": 0, "resource.kubernetes.io/pcieRoot": "x"}
    assert attribute.lookup(found, "a.com", "a.com/numa") == 0
    assert attribute.lookup(found, "a.com", "resource.kubernetes.io/pcieRoot") == "x"
    assert attribute.lookup(found, "a.com", "b.com/numa") is None
    assert attribute.lookup(found, "a.com", "a.com/") is None
    assert attribute.lookup({"a.com/numa": 1, "numa": 0}, "a.com", "a.com/numa") == 1


def test_constraints_compare_elements_with_their_types() -> None:
    assert attribute.members(1) == attribute.members((1, 1))
    assert attribute.members((1, 0)).isdisjoint(attribute.members((True, False)))
    assert attribute.members("1.0.0").isdisjoint(attribute.members(description.Version("1.0.0")))
    assert attribute.members(("a", "b")) >= attribute.members("b")

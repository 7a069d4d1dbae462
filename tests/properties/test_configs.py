"""Opaque configuration is taken as it is written in the API, or not at all."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from driver import errors, names
from driver.api import decode, nvidia
from tests.fuzz.judging import configs

Raw = dict[str, Any]
QUANTITIES = st.integers(1, 500).map(lambda count: f"{count}Gi")
PERCENTS = st.integers(1, 100)
INDEXES = st.integers(0, 7).map(str)


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Raw]:
    return st.fixed_dictionaries({}, optional=fields)


MPS = _some(
    pinnedMemory=QUANTITIES,
    activeThreadPercentage=PERCENTS,
    multiUser=st.booleans(),
    priority=st.sampled_from(["Normal", "BelowNormal"]),
)
THEIR_MPS = _some(
    defaultActiveThreadPercentage=PERCENTS,
    defaultPinnedDeviceMemoryLimit=QUANTITIES,
    defaultPerDevicePinnedMemoryLimit=st.dictionaries(INDEXES, QUANTITIES, max_size=3),
)
OUR_SHARING = st.one_of(
    MPS.map(lambda mps: {"strategy": "MPS", "mps": mps}),
    st.sampled_from(["Default", "Short", "Medium", "Long"]).map(
        lambda name: {"strategy": "TimeSlicing", "timeSlicing": {"interval": name}}
    ),
)
THEIR_SHARING = st.one_of(
    THEIR_MPS.map(lambda mps: {"strategy": "MPS", "mpsConfig": mps}),
    st.just({"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Short"}}),
)
OURS = st.builds(
    lambda sharing, across: {
        "apiVersion": names.CONFIG_VERSION,
        "kind": "GpuConfig",
        "crossNamespace": across,
        **({"sharing": sharing} if sharing else {}),
    },
    st.none() | OUR_SHARING,
    st.booleans(),
)
THEIRS = THEIR_SHARING.map(
    lambda sharing: {"apiVersion": nvidia.VERSION, "kind": "GpuConfig", "sharing": sharing}
)


UNSAID = {"multiUser"}
"""Fields of which null says what their absence does: the node decides."""


def is_read(document: Raw) -> bool:
    try:
        decode.decode_config(document, "at", from_class=True)
    except errors.BadInput:
        return False
    return True


def places(value: Any) -> Iterator[tuple[Raw, str]]:
    if isinstance(value, dict):
        for key in value:
            yield value, key
            yield from places(value[key])


def lax(value: Any) -> list[Any]:
    """Return what a lax reader would take for the value."""
    match value:
        case bool():
            return [int(value), str(value).lower(), float(value), None if value else "no"]
        case int():
            return [str(value), float(value), value + 0.5, True, [value], float("nan"), 10**400]
        case str():
            return [[value], {value: value}, 1, True, f" {value}", f"{value}\n", f"{value}\0"]
        case _:
            return [[value], 1, "x", True]


@given(OURS | THEIRS)
@settings(max_examples=150)
def test_an_accepted_configuration_round_trips_through_our_form(document: Raw) -> None:
    try:
        decoded = decode.decode_config(document, "at", from_class=True)
    except errors.BadInput:  # a combination that says nothing, such as a limit for no device
        return
    assert decode.decode_config(configs.written(decoded), "at", from_class=True) == decoded


@given(OURS | THEIRS, st.data())
@settings(max_examples=300)
def test_no_value_is_taken_for_one_of_another_type(document: Raw, data: st.DataObject) -> None:
    assume(is_read(document))
    changed = copy.deepcopy(document)
    inside, key = data.draw(st.sampled_from(list(places(changed))))
    values = lax(inside[key])
    if key in UNSAID:
        values = [value for value in values if value is not None]
    inside[key] = data.draw(st.sampled_from(values))
    assert not is_read(changed), changed


@given(OURS | THEIRS, st.data())
@settings(max_examples=150)
def test_a_field_in_another_case_or_beside_is_no_field(document: Raw, data: st.DataObject) -> None:
    assume(is_read(document))
    changed = copy.deepcopy(document)
    inside, key = data.draw(st.sampled_from(list(places(changed))))
    wrong = data.draw(st.sampled_from([key.upper(), key.capitalize(), f"{key} ", f"{key}s", ""]))
    if wrong == key or key.isdigit():
        return
    inside[wrong] = inside[key] if data.draw(st.booleans()) else inside.pop(key)
    assert not is_read(changed), changed


@pytest.mark.parametrize("levels", [1, 99, 101, 400, 900])
def test_nesting_is_refused_however_deep(levels: int) -> None:
    value: Any = {}
    for _ in range(levels):
        value = {"sharing": value}
    document = {"apiVersion": names.CONFIG_VERSION, "kind": "GpuConfig", "sharing": value}
    assert not is_read(document)

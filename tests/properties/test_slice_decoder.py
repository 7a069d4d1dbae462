"""Slices read in bulk are those that are read one by one, whatever a server sends."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from driver.resources.bulk import slice_decoder
from driver.resources.dra import slices
from tests.fuzz.judging import objects as judging
from tests.support.builders import objects

RECORDED = [
    item
    for path in sorted((Path(__file__).parents[1] / "data" / "slices").rglob("*.json"))
    for item in json.loads(path.read_text())["items"][:1]
]
SHARED = objects.a_slice(
    "node-b",
    [
        objects.a_share_device("share"),
        objects.drawing("part", "gpu-0", slots="2"),
        objects.a_device("far", nodeName="node-b", nodeAllocatable={"cpu": "1"}),
    ],
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
Location = tuple[Any, ...]


def locations(value: Any, path: Location = ()) -> Iterator[Location]:
    """Yield the path of every value inside of `value`."""
    for key, item in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield (*path, key)
        yield from locations(item, (*path, key))


def trimmed(item: Any) -> Any:
    """Return a slice with its first and last devices, so that each change is likely to matter."""
    devices = item["spec"].get("devices")
    few = {"devices": devices[:1] + devices[-1:]} if devices else {}
    return {**item, "spec": {**item["spec"], **few}}


ORIGINALS = [trimmed(item) for item in (*RECORDED, SHARED)]


@st.composite
def altered_slices(draw: st.DrawFn) -> Any:
    """Draw a real slice of which up to three values are replaced, added or removed."""
    obj = copy.deepcopy(draw(st.sampled_from(ORIGINALS)))
    for _ in range(draw(st.integers(0, 3))):
        *parents, key = draw(st.sampled_from([*locations(obj)]))
        target = obj
        for parent in parents:
            target = target[parent]
        match draw(st.sampled_from(["replace", "add", "remove"])):
            case "add" if isinstance(target, dict):
                target[draw(st.text(max_size=5))] = draw(VALUES)
            case "remove" if isinstance(target, dict):
                del target[key]
            case _:
                target[key] = draw(VALUES)
    return obj


@given(obj=altered_slices())
def test_a_slice_in_a_list_is_read_as_it_is_by_itself(obj: Any) -> None:
    text = json.dumps({"items": [obj]}).encode()
    message: Any = slice_decoder.decode(text)
    if message is not None:
        plain = json.loads(text)["items"][0]
        assert judging.read_outcome(slice_decoder.parse, message["items"][0]) == (
            judging.read_outcome(slices.parse, plain)
        )


def test_recorded_slices_are_decoded_in_bulk() -> None:
    message: Any = slice_decoder.decode(json.dumps({"items": ORIGINALS}).encode())
    assert len(message["items"]) == len(ORIGINALS)

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from driver import errors
from driver.resources.bulk import slice_decoder
from driver.resources.dra import slices
from tests.support.builders import objects

RECORDED = sorted((Path(__file__).parents[3] / "data" / "slices").rglob("*.json"))


def listing(*items: Mapping[str, Any]) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "7"}, "items": items}).encode()


def decode(*items: Mapping[str, Any]) -> list[slices.Slice]:
    message: Any = slice_decoder.decode(listing(*items))
    return [slice_decoder.parse(item) for item in message["items"]]


def recorded(path: Path) -> list[Any]:
    items: list[Any] = json.loads(path.read_text())["items"]
    return items


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_slices_are_read_as_plain_objects_are(path: Path) -> None:
    items = recorded(path)
    assert decode(*items) == [slices.parse(item) for item in items]


def test_equal_parts_of_devices_are_one_object() -> None:
    gpu = objects.a_device("gpu-0")
    first, second = decode(
        objects.a_slice("node-a", [gpu, {**gpu, "name": "gpu-0-mig-1g10gb-0"}]),
        objects.a_slice("node-b", [gpu]),
    )
    whole, instance, remote = *first.devices, *second.devices
    assert whole.attributes is instance.attributes
    assert whole.attributes == remote.attributes
    assert whole.capacity is remote.capacity
    assert whole.taints is remote.taints


def test_a_device_with_a_rare_field_is_read_whole() -> None:
    rare = objects.a_device("gpu-0", bindingConditions=["a"], bindingFailureConditions=["b"])
    unknown = objects.a_device("gpu-1", nodeAllocatable={"cpu": "1"})
    [result] = decode(objects.a_slice("node-a", [rare, unknown]))
    assert result.devices[0].binding == ("a",)
    assert result.devices[1].unsupported == ("nodeAllocatable",)


def test_unsupported_slice_fields_are_named() -> None:
    raw = objects.a_slice()
    raw["spec"]["mixins"] = [{}]
    assert decode(raw)[0].unsupported == ("mixins",)


def test_an_unreadable_device_is_reported_with_its_location() -> None:
    bad = objects.a_device("gpu-1", capacity={"memory": {"value": "much"}})
    with pytest.raises(errors.BadInput) as failed:
        decode(objects.a_slice("node-a", [objects.a_device("gpu-0"), bad]))
    assert failed.value.location == "spec.devices[1].capacity[memory].value"


def test_a_frame_of_a_watch_holds_its_slice() -> None:
    frame = {"type": "ADDED", "object": objects.a_slice()}
    message: Any = slice_decoder.decode(json.dumps(frame).encode())
    assert message["type"] == "ADDED"
    assert slice_decoder.parse(message["object"]) == slices.parse(objects.a_slice())


@pytest.mark.parametrize(
    "message",
    [
        {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}},
        {"metadata": {"resourceVersion": "7"}, "items": "many"},
        ["no", "message"],
    ],
)
def test_other_messages_are_left_to_the_plain_decoder(message: Any) -> None:
    assert slice_decoder.decode(json.dumps(message).encode()) is None


def test_text_that_is_no_json_is_left_to_the_plain_decoder() -> None:
    assert slice_decoder.decode(b'{"items": [') is None
    assert slice_decoder.decode(b"[" * 5000) is None


def test_forgotten_parts_are_read_again() -> None:
    first = [objects.with_values(objects.a_device(f"gpu-{n}"), serial=f"{n}") for n in range(2100)]
    many = [*first, first[0]]
    [result] = decode(objects.a_slice("node-a", many))
    assert result == slices.parse(objects.a_slice("node-a", many))

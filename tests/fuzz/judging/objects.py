"""Kubernetes objects, from the API server's bytes to our values."""

from collections.abc import Callable, Mapping
from typing import Any

from driver import errors
from driver.kube.http import json_decode
from driver.resources import disruption_budgets, pod_groups, queues, reservations
from driver.resources.bulk import slice_decoder
from driver.resources.core import node_selectors, nodes, pods, volumes
from driver.resources.dra import claims, device_classes, slices, taint_rules
from tests.fuzz.judging import refusing

_Parse = Callable[[Mapping[str, Any]], object]
PARSERS: Mapping[str, _Parse] = {
    "ResourceSlice": slices.parse,
    "ResourceClaim": claims.parse,
    "DeviceClass": device_classes.parse,
    "DeviceTaintRule": taint_rules.parse,
    "Pod": pods.parse,
    "Node": nodes.parse,
    "Queue": queues.parse,
    "Reservation": reservations.parse,
    "PodGroup": pod_groups.parse,
    "PodDisruptionBudget": disruption_budgets.parse,
    "PersistentVolumeClaim": volumes.parse_claim,
    "PersistentVolume": volumes.parse_volume,
}


def check(data: bytes) -> None:
    """Check by the declared kind, or by each, as the API server routes objects by their kind."""
    try:
        obj = json_decode.decode(data)
    except ValueError:
        return
    if not isinstance(obj, dict):
        return
    _check_bulk(data, obj)
    kind = obj.get("kind")
    expected = PARSERS[kind] if isinstance(kind, str) and kind in PARSERS else None
    for parsed in (expected,) if expected is not None else PARSERS.values():
        with refusing.refusals():
            _same(parsed(obj))


def _check_bulk(data: bytes, obj: Mapping[str, Any]) -> None:
    """Assert that a slice in a frame of a watch is read as it is by itself."""
    frame: Any = slice_decoder.decode(b'{"type": "ADDED", "object": %b}' % data)
    if frame is not None:
        assert read_outcome(slice_decoder.parse, frame["object"]) == read_outcome(slices.parse, obj)


def read_outcome(parse: _Parse, obj: Mapping[str, Any]) -> object:
    """Return the value, or what was said of an object that cannot be read."""
    try:
        return parse(obj)
    except errors.BadInput as error:
        return str(error)


def _same(result: object) -> None:
    """Assert that a written value reads the same."""
    match result:
        case slices.Slice():
            for device in result.devices:
                shown = slices.render_device(device)
                assert slices.render_device(slices.parse_device(shown, "")) == shown
        case claims.Claim(allocation=claims.Allocation() as made):
            _same_allocation(made)
        case pods.Pod() if result.affinity is not None:
            assert node_selectors.parse(node_selectors.render(result.affinity)) == result.affinity


def _same_allocation(allocation: claims.Allocation) -> None:
    shown = claims.render_allocation(allocation)
    status = {"allocation": shown}
    again = claims.parse({"metadata": {"name": "one"}, "status": status}).allocation
    assert again is not None
    assert claims.render_allocation(again) == shown

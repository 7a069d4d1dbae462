"""Every case of the test table of kube-scheduler's allocator has the same answer of ours.

A case that has another is in `DEVIATIONS` with its reason.
"""

import functools
import shutil
from collections.abc import Mapping

import pytest

from tests.oracle import differential, ours
from tests.oracle.upstream_table import cases

GATE_OFF = "a feature gate is off, which the API server would have dropped the field for"
DERIVED = "derived attributes are not served: the claim waits and says so"
NODE_OPERATIONS = "a device with optional node operations is not allocated, and the pod says so"
NEWER_GENERATION = (
    "the newest generation of a pool counts on every node; the table's allocator sees a node's own "
    "slices alone"
)
NO_OBJECT = "the API server refuses the object"
OVERFLOW = "a device whose capacity cannot be computed is left out, and does not end the search"
DEVIATIONS: Mapping[str, str] = {
    "admin-access-disabled": GATE_OFF,
    "binding-conditions-without-feature-gate": GATE_OFF,
    "compatibility-groups-disabled-skips-ungrouped-device-in-grouped-pool": GATE_OFF,
    "list-attributes-disabled-match-constraint-with-lists": GATE_OFF,
    "partitionable-devices-disabled-per-device-node-selection": GATE_OFF,
    "prioritized-list-disabled": GATE_OFF,
    "tainted-admin-access-disabled": GATE_OFF,
    "tainted-all-devices-single-disabled": GATE_OFF,
    "tainted-disabled": GATE_OFF,
    "tainted-prioritized-list-disabled": GATE_OFF,
    "derived-attributes": DERIVED,
    "derived-attributes-override": DERIVED,
    "derived-attributes-with-prioritized-list": DERIVED,
    "optional-node-operations": NODE_OPERATIONS,
    "multi-host-resource-pool-complete-update-from-node-1-to-node-2": NEWER_GENERATION,
    "multi-host-resource-pool-incomplete-update-from-node-1-to-node-2": NEWER_GENERATION,
    "consumable-capacity-range-policy-overflow-aborts-not-skip": OVERFLOW,
    "consumable-capacity-multi-allocatable-device-with-subrequest": NO_OBJECT,
    "partitionable-devices-device-counter-consumption-references-unknown-counter-set": NO_OBJECT,
    "unknown-selector": NO_OBJECT,
}
AGREED = {True: differential.Kind.AGREE_YES, False: differential.Kind.AGREE_NO}


@functools.cache
def table() -> Mapping[str, cases.Case]:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed to record the table (go.dev/dl)")
    return {case.name: case for case in cases.load()}


def test_the_table_is_recorded_whole() -> None:
    assert len(table()) > 250
    assert table().keys() >= DEVIATIONS.keys()


def test_every_case_has_the_same_answer(judging: differential.Judges) -> None:
    verdicts = {
        name: differential.again(case.world, ours.decide, judging)
        for name, case in table().items()
        if DEVIATIONS.get(name) != NO_OBJECT
    }
    others = {
        name: f"{verdict.kind}: {verdict.why}"
        for name, verdict in verdicts.items()
        if verdict.kind is not AGREED[table()[name].fits]
    }
    assert {name: text for name, text in others.items() if name not in DEVIATIONS} == {}
    assert {name for name, why in DEVIATIONS.items() if why != NO_OBJECT} == others.keys()

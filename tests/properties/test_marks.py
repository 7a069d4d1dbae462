"""Through whatever states a node goes, and whatever users say: its marks are those of its state."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from driver import ids, names
from driver.resources.core import nodes
from driver.resources.dra import slices
from driver.scheduling.provisioning import annotations
from driver.scheduling.snapshot import cluster_state
from tests.fakes.apiserver import applying
from tests.support import snapshots
from tests.support.builders import objects

KEEP = (names.KARPENTER_KEEP, names.AUTOSCALER_KEEP)
OURS = names.NODES_FIELD_MANAGER
TAINT = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
SINCE = dt.datetime(2026, 11, 21, 9, tzinfo=dt.UTC)


@dataclass(frozen=True)
class State:
    """A node's: `pool` is absent, empty, partial or whole; `said` is what users annotate."""

    pool: str = "absent"
    held: bool = False
    kept_for: annotations.ProvisionedFor | None = None
    leaving: bool = False
    said: Mapping[str, str] = field(default_factory=dict)


states = st.builds(
    State,
    pool=st.sampled_from(["absent", "empty", "partial", "whole"]),
    held=st.booleans(),
    kept_for=st.one_of(
        st.none(), st.sampled_from([annotations.ProvisionedFor(f"pod/a/{n}", SINCE) for n in "bc"])
    ),
    leaving=st.booleans(),
    said=st.dictionaries(st.sampled_from([*KEEP, "other"]), st.sampled_from(["true", "false"])),
)


class Node:
    """A Node at a server, with users and a controller that remembers nothing."""

    def __init__(self) -> None:
        self.raw = objects.a_node()
        self.owners: applying.Owners = {}
        self.writes = 0
        self.writes = 0

    def is_in(self, state: State) -> None:
        """The state comes; users say what they say, and the controller comes to rest."""
        fields = {"annotations": dict(state.said)} if state.said else {}
        self._apply({"metadata": {"name": "node-a", **fields}}, "user", force=True)
        for _ in range(3):
            node = nodes.parse({**self.raw, "spec": {"taints": [TAINT] if state.leaving else []}})
            view = picture_of(state, node)
            node_metadata = annotations.desired_metadata(
                view, view.nodes[node.name], state.kept_for
            )
            if annotations.is_applied(node, node_metadata):
                return
            self._apply(annotations.apply_body(node, node_metadata), OURS, force=False)
            self.writes += 1
        raise AssertionError("the marks never come to rest")

    def _apply(self, body: dict[str, Any], manager: str, *, force: bool) -> None:
        self.raw, self.owners = applying.apply(self.raw, body, manager, self.owners, force=force)
        self.raw["metadata"]["managedFields"] = applying.managed(self.owners)

    @property
    def has(self) -> dict[str, str]:
        meta = self.raw["metadata"]
        result = {**meta["labels"], **meta.get("annotations", {})}
        texts = {names.POOL_COMPLETE, names.PROVISIONED_FOR, *KEEP, "other"}
        return {key: value for key, value in result.items() if key in texts}


def picture_of(state: State, node: nodes.Node) -> cluster_state.ClusterState:
    view = cluster_state.ClusterState(
        snapshots.DRIVER, cluster_state.NodeMarkers("ours", frozenset({str(TAINT["key"])}))
    )
    view.set_node(node.name, node)
    if state.pool != "absent":
        count = {"empty": 0, "partial": 1, "whole": 1}[state.pool]
        shown = objects.a_slice(
            "node-a", count, resourceSliceCount=2 if state.pool == "partial" else 1
        )
        parsed = slices.parse(shown)
        view.set_slice(parsed.name, parsed)
    if state.held:
        claim = snapshots.holding("claim", "node-a", "gpu-0")
        view.set_reserved_devices(ids.Key("reservation:a/b"), claim.allocation)
    return view


def of_state(state: State, *, was_complete: bool) -> dict[str, str]:
    """Return what is to be there, said once more in other words."""
    result = dict(state.said)
    if state.pool == "whole" or (state.pool == "partial" and was_complete):
        result[names.POOL_COMPLETE] = "true"
    if state.leaving:
        return result
    if state.kept_for is not None:
        result[names.PROVISIONED_FOR] = f"{state.kept_for.demand} 2026-11-21T09:00:00Z"
    if state.kept_for is not None or state.held:
        result = {**dict.fromkeys(KEEP, "true"), **result}
    return result


@given(st.lists(states, min_size=1, max_size=6))
def test_marks_are_those_of_the_state_whatever_came_before(history: list[State]) -> None:
    node, was_complete = Node(), False
    for state in history:
        node.is_in(state)
        expected = of_state(state, was_complete=was_complete)
        assert node.has == expected
        was_complete = names.POOL_COMPLETE in expected


@given(states, states)
def test_every_change_is_written_once(previous: State, after: State) -> None:
    node = Node()
    node.is_in(previous)
    node.is_in(after)
    node.writes = 0
    node.is_in(after)
    assert not node.writes


@given(st.builds(annotations.ProvisionedFor, st.sampled_from(["pod/a/b", "gang/a/b"]), st.datetimes(
    dt.datetime(2000, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC)  # noqa: DTZ001
).map(lambda moment: moment.replace(microsecond=0))))  # fmt: skip
def test_the_purpose_of_a_requested_node_is_read_back(
    provisioned_for: annotations.ProvisionedFor,
) -> None:
    assert annotations.parse(provisioned_for.render()) == provisioned_for
    assert (
        annotations.unexpired_provenance(
            provisioned_for, provisioned_for.since + dt.timedelta(seconds=59), 60
        )
        == provisioned_for
    )
    assert (
        annotations.unexpired_provenance(
            provisioned_for, provisioned_for.since + dt.timedelta(seconds=60), 60
        )
        is None
    )

"""Counts kept by random changes, layers included, refuse as those counted at once."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from driver import ids, reasons
from driver.resources.core import pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.node_filter import filters
from driver.scheduling.gangs import overlay
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support.scenarios import affinity

NODES = ("a", "b", "c")
ZONES = {"a": ("east", "west"), "b": ("east",), "c": ("west", "north")}
TERMS: tuple[dict[str, Any], ...] = (
    {},
    {"affinity": affinity.apart(affinity.term("web"))},
    {"affinity": affinity.near(affinity.term("web", affinity.ZONE))},
    {"topologySpreadConstraints": [affinity.spread("web")]},
)
placing = st.tuples(
    st.sampled_from([f"p{number}" for number in range(5)]),
    st.sampled_from([*NODES, ""]),
    st.sampled_from(["web", "db"]),
    st.sampled_from(TERMS),
)
relabelling = st.tuples(st.sampled_from(NODES), st.integers(0, 1))
layering = st.lists(placing.filter(lambda drawn: bool(drawn[1])), max_size=2)
steps = st.lists(st.one_of(placing, relabelling, layering), max_size=15)
ASKING = tuple(affinity.a_pod(f"x{index}", app="web", **spec) for index, spec in enumerate(TERMS))


def refusals(view: snapshot.Snapshot) -> list[reasons.Reason | None]:
    answers = []
    for pod in ASKING:
        for _, node in sorted(view.nodes.items()):
            refusal = filters.rejection(view, node, allocator_types.Workload(pod, ()))
            answers.append(None if refusal is None else refusal.node_reason)
    return answers


def built(
    zones: dict[str, str], placed: dict[str, pods.Pod], more: list[pods.Pod]
) -> cluster_state.ClusterState:
    every = {**placed, **{pod.name: pod for pod in more}}
    return affinity.view([affinity.a_node(name, zones[name]) for name in NODES], [*every.values()])


@settings(max_examples=150)
@given(steps)
def test_kept_counts_refuse_as_those_counted_at_once(drawn: list[Any]) -> None:
    zones = {name: names[0] for name, names in ZONES.items()}
    placed: dict[str, pods.Pod] = {}
    view = built(zones, placed, [])
    layer = overlay.DecisionOverlay(view)
    for step in drawn:
        more: list[pods.Pod] = []
        if isinstance(step, list):
            for index, (_, node, app, spec) in enumerate(step):
                pod = affinity.a_pod(f"seat{index}", app=app, **spec)
                layer.apply(snapshot.InFlight(pod, ids.NodeName(node), {}))
                more.append(affinity.a_pod(f"seat{index}", node, app, **spec))
            assert refusals(layer) == refusals(built(zones, placed, more))
            layer.undo(len(more))
        elif len(step) == 2:
            name, number = step
            zones[name] = ZONES[name][number % len(ZONES[name])]
            view.set_node(ids.NodeName(name), affinity.a_node(name, zones[name]))
        else:
            name, node, app, spec = step
            pod = placed[name] = affinity.a_pod(name, node, app, **spec)
            view.set_pod(pod.key, pod)
        assert refusals(view) == refusals(built(zones, placed, []))
        layer = overlay.DecisionOverlay(view) if not isinstance(step, list) else layer
        assert refusals(layer) == refusals(view)

"""Our node filters and preferences beside kube-scheduler's plugins: `make filters SEEDS=30000`."""

from collections.abc import Iterator

import pytest

from driver.scheduling.allocator import node_score
from driver.scheduling.allocator.node_filter import (
    inter_pod_affinity,
    node_affinity,
    pod_topology_spread,
    taint_toleration,
)
from tests.oracle import conversation, program
from tests.oracle.filters import compare, deviations, drawing, ours, scores

SEEDS = range(400)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[conversation.Conversation]:
    if not program.cached(compare.ROOM).exists() and not program.can_be_had():
        pytest.skip("the program is not in the cache and Go is not installed to build it")
    with compare.scheduler() as talking:
        yield talking


def test_every_filter_says_what_kube_schedulers_plugin_says(
    scheduler: conversation.Conversation,
) -> None:
    tally = compare.run(SEEDS, scheduler)
    assert tally.bad == {}
    never = {plugin for plugin in compare.PLUGINS if not tally.refused[plugin]}
    assert never == {"NodeName"}  # of pods that are to be placed none names a node


def test_the_filters_of_1_36_differ_in_nothing_else_by_name() -> None:
    if not program.cached(compare.ROOM).exists() and not program.can_be_had():
        pytest.skip("the program is not in the cache and Go is not installed to build it")
    with compare.scheduler("1.36") as talking:
        tally = compare.run(range(200), talking, "1.36")
    assert tally.bad == {}
    assert {*tally.excused} <= {*deviations.REASONS, *deviations.OLDER}


def test_differences_are_listed_by_name(scheduler: conversation.Conversation) -> None:
    assert {*compare.run(SEEDS, scheduler).excused} <= {*deviations.REASONS}


def test_the_filters_together_refuse_what_one_of_them_refuses() -> None:
    for seed in SEEDS:
        drawn = drawing.cluster(seed)
        for parts, whole in zip(ours.answers(drawn), ours.facade(drawn), strict=True):
            assert {*whole} == {node for refused in parts.values() for node in refused}, seed


@pytest.mark.parametrize("state", [pod_topology_spread.State, inter_pod_affinity.State])
def test_a_filter_that_is_left_out_is_found_out(
    state: type, scheduler: conversation.Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "rejection", lambda _self, _node: None)
    assert compare.run(range(60), scheduler).bad


def test_nodes_are_preferred_by_the_scores_of_kube_schedulers_plugins(
    scheduler: conversation.Conversation,
) -> None:
    tally = scores.run(range(1000), scheduler)
    assert tally.bad == {}
    assert all(tally.telling[plugin] > 50 for plugin in scores.PLUGINS)


@pytest.mark.parametrize(
    ("location", "name", "value"),
    [
        (taint_toleration, "count_soft_taints", lambda _node, _pod: 0),
        (node_affinity, "score", lambda _node, _pod: 0),
        (node_score, "_spread_counts", lambda _pod, candidates, _placed: [0 for _ in candidates]),
        (
            node_score,
            "_affinity_weights",
            lambda _pod, candidates, _placed: [0 for _ in candidates],
        ),
        (node_score, "_HARD_WEIGHT", 0),
    ],
)
def test_a_score_that_is_left_out_is_found_out(
    location: object,
    name: str,
    value: object,
    scheduler: conversation.Conversation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(location, name, value)
    assert scores.run(range(100), scheduler).bad

"""Rounds are drawn from their seed alone, and fit."""

from tests.agreement import rounds

NODES = ("node-0", "node-1", "node-2")


def test_the_same_seed_draws_the_same_rounds() -> None:
    assert [*rounds.drawn(7, 30, 3)] == [*rounds.drawn(7, 30, 3)]
    assert [*rounds.drawn(7, 30, 3)] != [*rounds.drawn(8, 30, 3)]


def test_workloads_of_a_round_take_no_more_than_one_node_has() -> None:
    for each in rounds.drawn(7, 300, 3):
        assert each.workloads
        assert sum(rounds.cost(work) for work in each.workloads) <= rounds.GPUS


def test_rules_by_node_have_no_more_replicas_than_nodes() -> None:
    for each in rounds.drawn(7, 300, 3):
        for work in each.workloads:
            assert 1 <= work.replicas <= work.scaled
            if work.rule in {"apart", "host-port", "volume"}:
                assert work.scaled <= len(NODES)


def test_every_rule_and_every_kind_of_device_is_drawn() -> None:
    works = [work for each in rounds.drawn(7, 200, 3) for work in each.workloads]
    assert {work.rule for work in works} == {*rounds.RULES}
    assert {work.device for work in works} == {*rounds.DEVICES}


def test_every_kind_of_workload_comes_with_a_template_of_its_claims() -> None:
    kinds = set()
    for each in rounds.drawn(7, 50, 3):
        for work in each.workloads:
            created = [obj["kind"] for obj in rounds.objects(work, NODES)]
            assert created[-2:] == ["ResourceClaimTemplate", work.kind]
            kinds.add(work.kind)
    assert kinds == {"Deployment", "StatefulSet", "Job"}


def test_a_released_volume_is_asked_for_once() -> None:
    works = [work for each in rounds.drawn(7, 300, 3) for work in each.workloads]
    assert not [work for work in works if work.rule == "volume" and (work.updated or work.bounced)]


def test_the_pod_that_others_are_near_leaves_its_node() -> None:
    (work, *_) = (
        work for each in rounds.drawn(7, 50, 3) for work in each.workloads if work.rule == "near"
    )
    spec = rounds.companion(work, away_from="node-1")["spec"]["template"]["spec"]
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = terms["nodeSelectorTerms"]
    (expression,) = term["matchExpressions"]
    assert (expression["operator"], expression["values"]) == ("NotIn", ["node-1"])

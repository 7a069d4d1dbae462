"""The comparison agrees with itself and catches allocators that are wrong in one thing.

The run over our own allocator is `make differential SEEDS=20000`.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import (
    deviations,
    differential,
    draw_claims,
    draw_groups,
    draw_slices,
    oracle,
    reference,
    scenarios,
    shrink,
)
from tests.support.builders import objects

Raw = dict[str, Any]
Wrong = Callable[[differential.Ours], differential.Ours]
GPU = draw_slices.DRIVERS[0]
SEEDS = range(400)


@pytest.fixture(scope="module")
def same(built: Path) -> Iterator[differential.Ours]:
    """An allocator that answers what the reference answers."""
    with reference.Reference(built) as running:

        def ask(cluster: scenarios.Cluster, claims: Sequence[Raw]) -> differential.Answer:
            answers = running.answers(scenarios.World(cluster, tuple(claims)))
            for node, allocations in answers.fitting.items():
                return node, copy.deepcopy(allocations)
            if "timeout" in map(deviations.kind_of, answers.errors.values()):
                return differential.GaveUp("timeout")
            return "does not fit"

        yield ask


def says_no(_: differential.Ours) -> differential.Ours:
    return lambda _cluster, _claims: "no"


def forgets_what_is_in_use(ask: differential.Ours) -> differential.Ours:
    return lambda cluster, claims: ask(replace(cluster, allocated=()), claims)


def without(*keys: str) -> Wrong:
    """An allocator that does not see some keys of devices."""

    def blind(ask: differential.Ours) -> differential.Ours:
        def decide(cluster: scenarios.Cluster, claims: Sequence[Raw]) -> differential.Answer:
            slices = copy.deepcopy(list(cluster.slices))
            for slice_ in slices:
                for device in slice_["spec"].get("devices", ()):
                    for key in keys:
                        device.pop(key, None)
            return ask(replace(cluster, slices=slices), claims)

        return decide

    return blind


def without_groups(ask: differential.Ours) -> differential.Ours:
    """An allocator that does not see compatibility groups, and whatever else depends on them."""

    def decide(cluster: scenarios.Cluster, claims: Sequence[Raw]) -> differential.Answer:
        slices = copy.deepcopy(list(cluster.slices))
        for use in draw_groups.counter_uses(slices):
            use.pop("compatibilityGroups", None)
        return ask(replace(cluster, slices=slices), claims)

    return decide


def of_claims(key: str) -> Wrong:
    """An allocator that does not see a key of claims."""

    def blind(ask: differential.Ours) -> differential.Ours:
        def decide(cluster: scenarios.Cluster, claims: Sequence[Raw]) -> differential.Answer:
            fewer = copy.deepcopy(list(claims))
            for entry in fewer:
                entry["spec"]["devices"].pop(key, None)
            return ask(cluster, fewer)

        return decide

    return blind


def changing(change: Callable[[Raw], None]) -> Wrong:
    """An allocator that writes something else into the first result."""

    def wrong(ask: differential.Ours) -> differential.Ours:
        def decide(cluster: scenarios.Cluster, claims: Sequence[Raw]) -> differential.Answer:
            answer = ask(cluster, claims)
            if isinstance(answer, tuple):
                change(answer[1][0]["devices"]["results"][0])
            return answer

        return decide

    return wrong


def test_the_reference_agrees_with_itself(
    judging: differential.Judges, same: differential.Ours
) -> None:
    tally = differential.run(SEEDS, same, judging)
    assert tally.bad == {}
    agreed = tally.kinds[differential.Kind.AGREE_YES], tally.kinds[differential.Kind.AGREE_NO]
    assert min(agreed) > 100
    assert sum(agreed) > 0.98 * len(SEEDS)


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (says_no, differential.Kind.REFERENCE_ONLY),
        (forgets_what_is_in_use, differential.Kind.INVALID),
        (without("taints"), differential.Kind.INVALID),
        (without("consumesCounters"), differential.Kind.INVALID),
        (without_groups, differential.Kind.INVALID),
        (without("bindingConditions", "bindsToNode"), differential.Kind.INVALID),
        (of_claims("constraints"), differential.Kind.INVALID),
        (of_claims("config"), differential.Kind.INVALID),
        (changing(lambda entry: entry.update(device="other")), differential.Kind.INVALID),
        (changing(lambda entry: entry.pop("shareID", None)), differential.Kind.INVALID),
        (changing(lambda entry: entry.pop("tolerations", None)), differential.Kind.INVALID),
    ],
)
def test_an_allocator_that_is_wrong_in_one_thing_is_caught(
    judging: differential.Judges,
    same: differential.Ours,
    wrong: Wrong,
    kind: differential.Kind,
) -> None:
    tally = differential.run(SEEDS[:200], wrong(same), judging)
    assert kind in {verdict.kind for verdict in tally.bad.values()}


def test_giving_up_is_no_disagreement(judging: differential.Judges) -> None:
    verdict = differential.compare(1, lambda _a, _b: differential.GaveUp("steps"), judging)
    assert verdict == differential.Verdict(differential.Kind.GAVE_UP, "steps")
    assert not verdict.bad


def test_a_disagreement_is_shrunk_to_what_matters(
    judging: differential.Judges, same: differential.Ours
) -> None:
    blind = without("taints")(same)
    tally = differential.run(SEEDS[:100], blind, judging)
    seed = next(seed for seed, verdict in tally.bad.items() if "tolerate" in verdict.why)
    small, verdict = differential.smallest(seed, blind, judging)
    assert verdict.kind is differential.Kind.INVALID
    devices = [entry for part in small.cluster.slices for entry in part["spec"].get("devices", ())]
    assert len(devices) == len(small.claims) == len(small.cluster.nodes) == 1
    assert len(shrink.text(small).splitlines()) < 40


def a_world(devices: list[Raw], *claims: Raw) -> scenarios.World:
    published = objects.a_slice("node-a", devices, GPU)
    return scenarios.World(
        scenarios.Cluster(
            nodes={"node-a": {}}, slices=[published], classes=[draw_claims.a_class(GPU)]
        ),
        claims,
    )


def a_claim(name: str, **body: Any) -> Raw:
    counted = {"deviceClassName": GPU, "allocationMode": "ExactCount", "count": 1, **body}
    return objects.a_claim(name, {"name": "r0", "exactly": counted})


def given(device: str, **more: Any) -> Raw:
    """Return what would be written for one device of the node."""
    entry = {"request": "r0", "driver": GPU, "pool": "node-a", "device": device, **more}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
    return {"devices": {"results": [entry]}, "nodeSelector": {"nodeSelectorTerms": [term]}}


def answering(*allocations: Raw) -> differential.Ours:
    return lambda _cluster, _claims: ("node-a", allocations)


def test_a_selector_that_fails_makes_both_answers_right(judging: differential.Judges) -> None:
    text = f'device.attributes["{GPU}"].size > 1'
    chosen = [{"cel": {"expression": text}}]
    small, large = ({"name": name} for name in ("bare", "large"))
    large["attributes"] = {"size": {"int": 2}}  # type: ignore[assignment]
    for devices, ours in (
        ([small, large], answering(given("large"))),
        ([large, small], lambda _a, _b: "a selector failed"),
    ):
        world = a_world(devices, a_claim("claim", selectors=chosen))
        verdict = differential.again(world, ours, judging)
        assert (verdict.kind, verdict.why) == (differential.Kind.REFERENCE_ERROR, "cel")


def test_a_reference_rejection_because_of_admin_access_is_a_known_deviation(
    judging: differential.Judges,
) -> None:
    claims = a_claim("sees", adminAccess=True), a_claim("works")
    world = a_world([{"name": "only"}], *claims)
    ours = answering(given("only", adminAccess=True), given("only"))
    verdict = differential.again(world, ours, judging)
    assert (verdict.kind, verdict.why) == (differential.Kind.REFERENCE_ERROR, "admin-first")


def test_an_outdated_device_that_the_reference_gives_is_its_error(
    judging: differential.Judges,
) -> None:
    """It counts a pool's slices on the node before it asks whether newer ones are elsewhere."""
    old, new = (objects.a_slice("fabric", [{"name": name}], GPU) for name in ("old", "new"))
    del old["spec"]["nodeName"]
    old["spec"]["allNodes"] = True
    new["metadata"] = objects.meta("newer", None)
    new["spec"]["nodeName"] = "node-b"
    new["spec"]["pool"]["generation"] = 2
    cluster = scenarios.Cluster({"node-a": {}}, [old, new], [draw_claims.a_class(GPU)])
    world = scenarios.World(cluster, (a_claim("claim"),))
    verdict = differential.again(world, says_no(answering()), judging)
    assert verdict.kind is differential.Kind.REFERENCE_ERROR
    assert "fabric/old cannot be used on node-a" in verdict.why


def test_all_that_breaks_a_constraint_excuses_the_reference(judging: differential.Judges) -> None:
    devices: list[Raw] = [
        {"name": name, "attributes": {"model": {"string": name}}} for name in ("a", "b")
    ]
    body = {"deviceClassName": GPU, "allocationMode": "All"}
    ways = [{"name": "all", **body}, {"name": "one", "deviceClassName": GPU, "count": 1}]
    claim = objects.a_claim("claim", {"name": "r0", "firstAvailable": ways})
    claim["spec"]["devices"]["constraints"] = [{"matchAttribute": f"{GPU}/model"}]
    ours = answering(given("a", request="r0/one"))
    verdict = differential.again(a_world(devices, claim), ours, judging)
    assert (verdict.kind, verdict.why) == (differential.Kind.REFERENCE_ERROR, "all-constraint")


def test_a_valid_yes_where_the_reference_refuses_without_a_known_cause_is_ours_only(
    judging: differential.Judges,
) -> None:
    world = a_world([{"name": "a"}], a_claim("claim"))
    answers = reference.Answers({"node-a": oracle.Unallocated("")}, (1,))
    verdict = differential.judge(world, answers, ("node-a", [given("a")]), judging)
    assert verdict.kind is differential.Kind.WE_ONLY

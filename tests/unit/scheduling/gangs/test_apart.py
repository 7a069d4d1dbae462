"""Members of a gang count for each other's affinity and spread while they are seated."""

from dataclasses import replace
from typing import Any

import pytest

from driver import reasons
from driver.resources.core import interpod_affinity, topology_spread
from driver.scheduling.allocator import types as allocator_types
from tests.support.builders import gangs
from tests.support.scenarios import affinity


def members(count: int, **spec: Any) -> list[allocator_types.Workload]:
    """Return the members of one app, with affinity and spread as a pod's spec has them."""
    labels = {"app": "train"}
    terms = interpod_affinity.parse(spec, "default")
    spread = topology_spread.parse(spec, labels)
    return [
        replace(
            workload,
            pod=replace(workload.pod, labels=labels, pod_affinity=terms, spread_constraints=spread),
        )
        for workload in gangs.alike(count)
    ]


APART = {"affinity": affinity.apart(affinity.term("train"))}
EVEN = {"topologySpreadConstraints": [affinity.spread("train", affinity.HOST)]}


def test_members_that_keep_apart_are_seated_apart() -> None:
    view = gangs.racks([[[4, 4]]])
    assert sorted(gangs.where(gangs.place(view, members(2, **APART))).values()) == [1, 1]


def test_with_too_few_nodes_for_anti_affinity_no_member_is_placed() -> None:
    answer = gangs.unseated(gangs.place(gangs.racks([[[4, 4]]]), members(3, **APART)))
    (domain_shortage,) = answer.shortages
    refused = {refusal.node_reason for refusal in domain_shortage.rejections}
    assert refused == {reasons.Reason.NODE_POD_ANTI_AFFINITY}


def test_members_that_want_each_other_share_a_node() -> None:
    together = {"affinity": affinity.near(affinity.term("train"))}
    view = gangs.racks([[[2, 4]]])
    assert [*gangs.where(gangs.place(view, members(3, **together))).values()] == [3]


def test_members_are_spread_as_evenly_as_they_ask() -> None:
    view = gangs.racks([[[4, 4, 4]]])
    assert sorted(gangs.where(gangs.place(view, members(7, **EVEN))).values()) == [2, 2, 3]
    answer = gangs.unseated(gangs.place(gangs.racks([[[1, 4]]]), members(4, **EVEN)))
    assert answer.shortages[0].fits == 3


@pytest.mark.parametrize("apps", [("web", "db"), ("db", "web")])
def test_a_member_that_a_placed_pod_minds_does_not_keep_the_others_away(
    apps: tuple[str, str],
) -> None:
    view = gangs.racks([[[1], [1]]])
    first = min(view.nodes)
    minds = affinity.apart(affinity.term("web", gangs.RACK))
    loner = affinity.a_pod("loner", first, "other", affinity=minds)
    view.set_pod(loner.key, loner)
    mixed = [
        replace(member, pod=replace(member.pod, labels={"app": app}))
        for member, app in zip(gangs.alike(2), apps, strict=True)
    ]
    assert sorted(gangs.where(gangs.place(view, mixed)).values()) == [1, 1]

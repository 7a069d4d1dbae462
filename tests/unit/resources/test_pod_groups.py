"""PodGroups of both kinds: how many of their pods have to run at once."""

from typing import Any

import pytest

from driver.resources import pod_groups
from tests.support.builders import objects


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        ({"minMember": 4}, 4),
        ({"schedulingPolicy": {"gang": {"minCount": 3}}}, 3),
        ({"schedulingPolicy": {"basic": {}}}, 0),
        ({}, 0),
    ],
)
def test_the_min_count_of_a_pod_group_is_read(spec: dict[str, Any], least: int) -> None:
    pod_group = pod_groups.parse({"metadata": objects.meta("train"), "spec": spec})
    assert (pod_group.key, pod_group.min_members) == ("default/train", least)


def parsed(**spec: Any) -> pod_groups.PodGroup:
    return pod_groups.parse({"metadata": objects.meta("train"), "spec": spec})


def test_priority_topology_and_parent_of_a_pod_group_are_read() -> None:
    result = parsed(
        priority=7,
        schedulingConstraints={"topology": [{"key": "example.com/rack"}]},
        parentCompositePodGroupName="tree",
    )
    assert (result.priority, result.topology_key, result.parent) == (7, "example.com/rack", "tree")
    assert parsed(priority=0).priority == 0
    assert (parsed().priority, parsed().topology_key, parsed().parent) == (None, "", "")


@pytest.mark.parametrize(
    ("mode", "together"),
    [({"all": {}}, True), ({"single": {}}, False), ("PodGroup", True), ("Pod", False)],
)
def test_the_disruption_mode_is_read_of_every_version(mode: Any, *, together: bool) -> None:
    basic = parsed(schedulingPolicy={"basic": {}}, disruptionMode=mode)
    assert basic.disrupted_together is together
    assert basic.lets_pods_go_alone is not together


def test_pods_of_a_group_with_a_min_count_never_go_alone() -> None:
    gang = parsed(schedulingPolicy={"gang": {"minCount": 2}}, disruptionMode={"single": {}})
    assert not gang.lets_pods_go_alone

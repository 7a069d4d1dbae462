"""Tests of what the pods of a gang say of it, and what is wrong with it."""

from typing import Any

import pytest

from driver import errors, ids, names
from driver.resources import pod_groups
from driver.resources.core import pods
from driver.scheduling.gangs import index as gang_index
from tests.support.builders import objects
from tests.support.builders.scheduler_objects import a_member

KEY = ids.Key("default/train")


def members(*raw: dict[str, Any]) -> tuple[pods.Pod, ...]:
    return tuple(pods.parse(entry) for entry in raw)


def group(least: int, **more: Any) -> pod_groups.PodGroup:
    return pod_groups.PodGroup("default", "train", least, **more)


def grouped(name: str, **spec: Any) -> pods.Pod:
    """A pod of a PodGroup of Kubernetes' own."""
    return objects.pod(name, schedulingGroup={"podGroupName": "train"}, **spec)


def test_pods_are_in_the_gang_whose_label_they_have() -> None:
    index = gang_index.GangIndex()
    for pod in members(a_member("a"), a_member("b")):
        index.set_pod(pod.key, pod)
    index.set_pod(ids.Key("default/alone"), objects.pod("alone"))
    assert [member.name for member in index.members(KEY)] == ["a", "b"]


@pytest.mark.parametrize(
    "status", [{"phase": "Succeeded"}, {"phase": "Failed"}], ids=lambda item: item["phase"]
)
def test_a_pod_that_ended_does_not_count(status: dict[str, str]) -> None:
    index = gang_index.GangIndex()
    pod = pods.parse({**a_member("a"), "status": status})
    index.set_pod(pod.key, pod)
    assert index.members(KEY) == ()


def test_a_pod_that_is_gone_leaves_its_gang() -> None:
    index = gang_index.GangIndex()
    (pod,) = members(a_member("a"))
    index.set_pod(pod.key, pod)
    index.set_pod(pod.key, None)
    assert index.members(KEY) == ()


@pytest.mark.parametrize("label", names.POD_GROUP_LABELS)
def test_the_labels_of_the_coscheduling_plugin_name_a_gang(label: str) -> None:
    pod = objects.a_pod("a")
    pod["metadata"]["labels"] = {label: "train"}
    assert gang_index.gang_key(pods.parse(pod)) == KEY


def test_a_pod_of_kubernetes_own_pod_group_is_of_its_gang() -> None:
    assert gang_index.gang_key(objects.pod("a", schedulingGroup={"podGroupName": "train"})) == KEY


def test_the_size_is_what_the_pods_say() -> None:
    gang = gang_index.read_gang(KEY, members(a_member("a"), a_member("b")), None)
    assert gang is not None
    assert (gang.min_members, gang.is_exact) == (2, True)


def test_a_pod_group_says_how_many_have_to_run_at_once() -> None:
    gang = gang_index.read_gang(KEY, members(a_member("a", ""), a_member("b", "")), group(1))
    assert gang is not None
    assert (gang.min_members, gang.is_exact) == (1, False)


def test_a_pod_group_that_wants_none_at_once_is_no_gang() -> None:
    assert gang_index.read_gang(KEY, members(a_member("a", "")), group(0)) is None


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ([a_member("a", "")], "gang default/train does not say its size"),
        ([a_member("a", "two")], "'two' is no size; expected a number from 1 to 4096"),
        ([a_member("a", "0")], "'0' is no size"),
        ([a_member("a", "2"), a_member("b", "3")], "pods of one gang say '2', '3'"),
        ([a_member("a", "1"), a_member("b", "1")], "1 is below the 2 pods that gang"),
    ],
)
def test_a_size_that_makes_no_gang_is_told_with_its_path(
    raw: list[dict[str, Any]], words: str
) -> None:
    with pytest.raises(errors.BadInput) as caught:
        gang_index.read_gang(KEY, members(*raw), None)
    assert caught.value.location == "metadata.annotations[ration.dev/gang-size]"
    assert words in str(caught.value)


def test_a_timeout_that_is_none_is_told_with_its_path() -> None:
    with pytest.raises(errors.BadInput, match=r"gang-timeout\]: 'soon' is no duration"):
        gang_index.read_gang(KEY, members(a_member("a", **{names.GANG_TIMEOUT: "soon"})), None)


def test_levels_of_topology_are_those_the_pods_name() -> None:
    annotations = {names.TOPOLOGY_REQUIRED: "zone", names.TOPOLOGY_PREFERRED: "rack"}
    gang = gang_index.read_gang(KEY, members(a_member("a", "1", **annotations)), None)
    assert gang is not None
    assert (
        gang.topology_request.levels,
        gang.topology_request.required,
        gang.topology_request.preferred,
    ) == (
        ("zone", "rack"),
        "zone",
        "rack",
    )


@pytest.mark.parametrize("least", [0, 2])
def test_a_pod_of_another_priority_than_its_pod_group_is_refused(least: int) -> None:
    pods_of_group = (grouped("a", priority=5), grouped("b"))
    words = "PodGroup train has the priority 5, pod b 0; expected one priorityClassName"
    with pytest.raises(errors.BadInput, match=words):
        gang_index.read_gang(KEY, pods_of_group, group(least, priority=5))
    result = gang_index.read_gang(KEY, pods_of_group[:1], group(1, priority=5))
    assert result is not None
    assert result.priority == 5


def test_a_pod_group_of_a_composite_pod_group_is_refused() -> None:
    with pytest.raises(errors.BadInput, match="belongs to CompositePodGroup tree"):
        gang_index.read_gang(KEY, (grouped("a"),), group(1, parent="tree"))


def test_the_topology_constraint_of_a_pod_group_is_a_required_level() -> None:
    result = gang_index.read_gang(KEY, (grouped("a"),), group(1, topology_key="rack"))
    assert result is not None
    assert (result.topology_request.levels, result.topology_request.required) == (("rack",), "rack")
    annotated = objects.a_pod("a", schedulingGroup={"podGroupName": "train"})
    annotated["metadata"]["annotations"] = {names.TOPOLOGY_REQUIRED: "zone"}
    with pytest.raises(errors.BadInput, match="the pods say 'zone', their PodGroup 'rack'"):
        gang_index.read_gang(KEY, members(annotated), group(1, topology_key="rack"))


def test_a_topology_constraint_without_a_gang_policy_is_refused() -> None:
    with pytest.raises(errors.BadInput, match="has a topology constraint, and no gang policy"):
        gang_index.read_gang(KEY, (grouped("a"),), group(0, topology_key="rack"))


def test_a_pod_group_that_is_not_read_names_the_setting_that_reads_it() -> None:
    with pytest.raises(errors.BadInput, match=r"controller\.podGroups"):
        gang_index.read_gang(KEY, (grouped("a"),), None)

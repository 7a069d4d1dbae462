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

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
def test_how_many_have_to_run_at_once(spec: dict[str, Any], least: int) -> None:
    found = pod_groups.parse({"metadata": objects.meta("train"), "spec": spec})
    assert (found.key, found.min_members) == ("default/train", least)

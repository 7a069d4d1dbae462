"""Tests of what the figures that must hold under load are made of."""

import collections
import json
import re

import pytest
import yaml

from benchmarks import bars, goals, record
from benchmarks.hold import asking, mix
from driver.api import offerings
from tests.fakes import simulated_pool

OURS = "system:serviceaccount:ration-system:ration-kubeletplugin"


def said(verb: str, kind: str, stage: str = "ResponseComplete", who: str = OURS) -> str:
    line = {
        "verb": verb,
        "stage": stage,
        "user": {"username": who},
        "requestURI": f"/apis/{kind}?limit=500",
        "objectRef": {"resource": kind},
    }
    return json.dumps(line)


@pytest.fixture(scope="module")
def devices() -> list[str]:
    pool = simulated_pool.of_machine("node-1", "controller")
    return [device.name for device in pool.devices]


def test_requests_of_an_account_are_counted_by_verb_and_kind() -> None:
    lines = [
        said("get", "nodes"),
        said("get", "nodes"),
        said("update", "resourceslices"),
        said("get", "nodes", who="system:serviceaccount:ration-system:ration-controller"),
    ]
    result = asking.read(lines, "ration-kubeletplugin")
    assert result.kinds == {"get nodes": 2, "update resourceslices": 1}
    assert result.words == "2 get nodes, 1 update resourceslices"
    assert (result.writes, result.of("get")) == (1, 2)


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection"])
def test_each_verb_that_changes_something_is_a_write(verb: str) -> None:
    assert asking.read([said(verb, "events")], "ration-kubeletplugin").writes == 1


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
def test_reading_is_no_write(verb: str) -> None:
    stage = "ResponseStarted" if verb == "watch" else "ResponseComplete"
    result = asking.read([said(verb, "events", stage)], "ration-kubeletplugin")
    assert (result.writes, result.of(verb)) == (0, 1)


def test_a_watch_counts_once_though_it_is_told_of_twice() -> None:
    lines = [said("watch", "nodes", stage) for stage in ("ResponseStarted", "ResponseComplete")]
    assert asking.read(lines, "ration-kubeletplugin").of("watch") == 1


def test_requests_without_an_object_are_counted_by_path() -> None:
    line = json.loads(said("get", ""))
    del line["objectRef"]
    result = asking.read(
        [json.dumps(line | {"requestURI": "/version?x=1"})], "ration-kubeletplugin"
    )
    assert result.kinds == {"get /version": 1}


def test_a_part_of_an_hour_stands_for_an_hour() -> None:
    assert asking.an_hour(2, 600) == 12
    assert asking.percent(3, 600) == 0.5


def test_256_live_claims_fill_every_gpu_s_time_slices(devices: list[str]) -> None:
    shares = collections.Counter(mix.shares(devices))
    assert set(shares.values()) == {mix.TIME_SLICES}
    assert (len(shares), shares.total()) == (8, mix.LIVE)
    assert set(shares) <= set(devices)


def test_a_burst_is_of_110_pods_and_of_each_gpu_in_one_way(devices: list[str]) -> None:
    burst = mix.burst(devices)
    assert len(burst) == mix.BURST
    assert set(burst) <= set(devices)
    ways: dict[str, set[str]] = {}
    for name in burst:
        gpu, way = re.fullmatch(r"(gpu(?:-\w+){4})-(mig|mps|ts).*", name).groups()  # type: ignore[union-attr]
        ways.setdefault(gpu, set()).add(way)
    assert sorted(way for (way,) in ways.values()) == [*["mig"] * 2, *["mps"] * 3, *["ts"] * 3]


def test_a_mig_device_of_a_burst_is_asked_for_once(devices: list[str]) -> None:
    parts = [name for name in mix.burst(devices) if "-mig-" in name]
    assert len(parts) == len(set(parts)) == 14


def test_shares_are_as_many_as_the_node_offers() -> None:
    document = offerings.read(yaml.safe_load(mix.OFFERINGS), "offerings.yaml")
    (rule,) = document.rules
    assert (rule.timeSlices, rule.mpsShares) == (mix.TIME_SLICES, mix.MPS_SHARES)


def test_the_shares_of_a_gpu_fit_into_it() -> None:
    for device, count in (("gpu-a-ts", mix.TIME_SLICES), ("gpu-a-mps", mix.MPS_SHARES)):
        amounts = mix.amounts(device)
        assert int(amounts["compute"]) * count <= 100
        assert int(amounts["memory"].removesuffix("Mi")) * count <= 79 * 1024
    assert mix.amounts("gpu-a-mig-1g10gb-0") == {}


def test_an_idle_plugin_s_bars_can_be_missed() -> None:
    expected = goals.bars()
    for name, unit, value in (
        ("CPU of an idle plugin", "% of a CPU", 0.6),
        ("API writes of an idle plugin an hour", "", 1.0),
    ):
        figure = record.Figure(name, unit, value)
        bar = expected[f"hold/{figure.key}"]
        assert bars.judge(figure, bar).met is False
        assert bars.more_is_better(figure, bar) is False

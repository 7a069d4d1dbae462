"""BB-7: what a class or a claim configures reaches the right device and the right container."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from driver.kube import gvr
from tests.blackbox import subject
from tests.blackbox.catalogue import CLUSTER, case
from tests.blackbox.ground import room, seat

CONFIG, MIXED = subject.Feature.CONFIG, subject.Feature.CONFIG_MIXED
NEVER = {"cel": {"expression": "false"}}


@pytest.fixture
def configs(tried: subject.Subject) -> subject.Configs:
    assert tried.config is not None
    return tried.config


@pytest.fixture
def configured(here: seat.Seat, field: room.Room, configs: subject.Configs) -> Iterator[str]:
    """A class that comes with the first configuration."""
    name = f"{field.namespace}.example.com"
    plain = here.kube.get(gvr.DEVICE_CLASSES, here.subject.device.request["deviceClassName"])
    spec = {**plain["spec"], "config": [field.config(configs.one.parameters)]}
    here.kube.create(gvr.DEVICE_CLASSES, {"metadata": {"name": name}, "spec": spec})
    yield name
    here.kube.delete(gvr.DEVICE_CLASSES, name)


def shown(field: room.Room, configs: subject.Configs, pod: str, container: str = "main") -> str:
    """Return which configurations a container shows."""
    lines = field.environment(pod, container)
    both = {"one": configs.one.shows, "other": configs.other.shows}
    return " ".join(name for name, line in both.items() if line in lines)


def first_available(name: str, *choices: Mapping[str, Any]) -> dict[str, Any]:
    """A request for the first of these that can be had: sub-0, sub-1, ..."""
    named = [{"name": f"sub-{index}", **choice} for index, choice in enumerate(choices)]
    return {"name": name, "firstAvailable": named}


@case(
    "BB-7.1",
    f"{CLUSTER}: must map configs and devices to the right containers (in one claim)",
    CONFIG,
    MIXED,
)
def test_each_container_has_its_requests_device_and_configuration(
    field: room.Room, configs: subject.Configs
) -> None:
    settings = [
        field.config(configs.one.parameters, "left"),
        field.config(configs.other.parameters, "right"),
    ]
    field.claim("both", field.a_request("left"), field.a_request("right"), config=settings)
    field.pod("pair", "both", containers={"left": ["both/left"], "right": ["both/right"]})
    field.running("pair", 90)
    assert shown(field, configs, "pair", "left") == "one"
    assert shown(field, configs, "pair", "right") == "other"
    left, right = field.has("pair", "left"), field.has("pair", "right")
    assert len(left) == len(right) == 1
    assert left != right


@case("BB-7.2", f"{CLUSTER}: must map configs and devices to the right containers (no config)")
def test_each_container_has_the_devices_it_names(field: room.Room) -> None:
    field.claim("two", field.a_request("left"), field.a_request("right"))
    field.claim("one")
    named = {"left": ["two/left"], "right": ["two/right", "one"], "all": ["two"], "none": []}
    field.pod("mixed", "two", "one", containers=named)
    field.running("mixed", 90)
    left, right = set(field.has("mixed", "left")), set(field.has("mixed", "right"))
    assert (len(left), len(right)) == (1, 2)
    assert not left & right
    assert len(field.has("mixed", "all")) == 2
    assert left < set(field.has("mixed", "all"))
    assert field.has("mixed", "none") == []


@case("BB-7.3", f"{CLUSTER}: supports claim and class parameters", CONFIG)
def test_a_claims_configuration_goes_before_its_classs(
    field: room.Room, configs: subject.Configs, configured: str
) -> None:
    request = field.a_request(deviceClassName=configured)
    field.claim("class", request)
    field.claim("claim", request, config=[field.config(configs.other.parameters)])
    for name in ("class", "claim"):
        field.pod(name, name)
    for name in ("class", "claim"):
        field.running(name, 90)
    assert shown(field, configs, "class") == "one"
    assert shown(field, configs, "claim") == "other"


@case("BB-7.4", f"{CLUSTER}: selects the first subrequest that can be satisfied")
def test_the_first_choice_that_can_be_had_is_given(field: room.Room) -> None:
    plain = dict(field.seat.subject.device.request)
    field.claim("choice", first_available("main", {**plain, "selectors": [NEVER]}, plain))
    field.pod("choice", "choice", containers={"main": ["choice/main"]})
    field.running("choice")
    assert [result["request"] for result in field.results("choice")] == ["main/sub-1"]
    assert len(field.has("choice")) == 1


@case("BB-7.5", f"{CLUSTER}: uses the config for the selected subrequest", CONFIG)
def test_the_configuration_of_the_choice_counts(field: room.Room, configs: subject.Configs) -> None:
    plain = dict(field.seat.subject.device.request)
    choice = first_available("main", {**plain, "selectors": [NEVER]}, plain)
    settings = [
        field.config(configs.one.parameters, "main/sub-0"),
        field.config(configs.other.parameters, "main/sub-1"),
    ]
    field.claim("choice", choice, config=settings)
    field.pod("choice", "choice")
    field.running("choice", 90)
    assert shown(field, configs, "choice") == "other"


@case("BB-7.6", f"{CLUSTER}: filters config correctly for multiple devices", CONFIG)
def test_a_configuration_of_one_request_is_not_anothers(
    field: room.Room, configs: subject.Configs
) -> None:
    plain = dict(field.seat.subject.device.request)
    choice = first_available("choice", plain, {**plain, "selectors": [NEVER]})
    settings = [
        field.config(configs.one.parameters, "choice/sub-0"),
        field.config(configs.other.parameters, "choice/sub-1"),
    ]
    field.claim("mixed", choice, field.a_request("bare"), config=settings)
    field.pod("mixed", "mixed", containers={"choice": ["mixed/choice"], "bare": ["mixed/bare"]})
    field.running("mixed", 90)
    assert shown(field, configs, "mixed", "choice") == "one"
    assert shown(field, configs, "mixed", "bare") == ""


@case("BB-7.7", "F-29: ours", CONFIG)
def test_a_configuration_that_will_not_do_is_told_on_the_pod(
    field: room.Room, configs: subject.Configs
) -> None:
    if configs.refused is None:
        pytest.skip("config.refused is not given")
    field.claim("wrong", config=[field.config(configs.refused)])
    field.pod("wrong", "wrong")
    assert field.refused("wrong")[0]
    assert field.phase("wrong") == "Pending"
    field.claim("right")
    field.pod("right", "right")
    field.running("right")


@case("BB-7.8", f"{CLUSTER}: must map configs and devices to the right containers", CONFIG)
def test_each_container_has_its_claims_configuration(
    field: room.Room, configs: subject.Configs
) -> None:
    both = {"left": configs.one, "right": configs.other}
    for name, config in both.items():
        field.claim(name, config=[field.config(config.parameters)])
    named = {"left": ["left"], "right": ["right"], "none": []}
    field.pod("pair", "left", "right", containers=named)
    field.running("pair", 90)
    assert shown(field, configs, "pair", "left") == "one"
    assert shown(field, configs, "pair", "right") == "other"
    assert shown(field, configs, "pair", "none") == ""
    left, right = field.has("pair", "left"), field.has("pair", "right")
    assert len(left) == len(right) == 1
    assert left != right

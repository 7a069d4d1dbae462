"""The oracle gives the answers of kube-scheduler's allocator that our own decisions lean on."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from driver import ids
from driver.devices import attributes
from driver.resources import quantities
from driver.resources.dra import capacities, slices
from driver.resources.publish import slice_builder
from hack.cluster import versions
from tests.oracle import oracle, program
from tests.support.builders import objects

Raw = dict[str, Any]
NODE = "node-a"
CLASS = "gpu.example.com"
TAINT = {"key": "lost", "value": "yes", "effect": "NoSchedule"}


def a_device(name: str, **more: Any) -> Raw:
    return {"name": name, "attributes": {"type": {"string": "gpu"}}, **more}


def gpus(count: int, **more: Any) -> list[Raw]:
    return [a_device(f"gpu-{number}", **more) for number in range(count)]


def a_class(expression: str = "true") -> Raw:
    return objects.a_class(CLASS, expression)


def a_claim(name: str, count: int = 1, **exactly: Any) -> Raw:
    return objects.a_claim(name, objects.a_request("gpu", count, deviceClassName=CLASS, **exactly))


def every_gpu(name: str) -> Raw:
    request = {"deviceClassName": CLASS, "allocationMode": "All"}
    return objects.a_claim(name, {"name": "gpu", "exactly": request})


def of_memory(name: str, memory: str) -> Raw:
    return a_claim(name, capacity={"requests": {"memory": memory}})


def a_scenario(devices: list[Raw], *claims: Raw, **more: Any) -> oracle.Scenario:
    fields: Raw = {"slices": [objects.a_slice(NODE, devices)], "classes": [a_class()], **more}
    return oracle.Scenario(claims=claims, node=NODE, **fields)


def given(answer: oracle.Answer) -> list[list[str]]:
    """The names of the devices, claim by claim."""
    assert isinstance(answer, oracle.Allocated), answer
    return [[device.device for device in devices] for devices in answer.devices]


def one_after_another(
    request: oracle.Oracle, devices: list[Raw], claims: Sequence[Raw], **more: Any
) -> list[oracle.Answer]:
    """The answers for claims that come one by one; what fits stays allocated."""
    answers: list[oracle.Answer] = []
    held: tuple[Raw, ...] = ()
    for claim in claims:
        answer = request.allocate(a_scenario(devices, claim, allocated=held, **more))
        if isinstance(answer, oracle.Allocated):
            held += answer.settle([claim])
        answers.append(answer)
    return answers


def test_the_oracle_is_the_allocator_of_the_kubernetes_that_the_cluster_runs() -> None:
    catalogue = versions.load()
    staging = catalogue.kubernetes[catalogue.default].staging
    pinned = re.findall(
        r"^\s*(k8s\.io/\S+) (v0\.[1-9]\S+)", (program.ROOM / "go.mod").read_text(), re.MULTILINE
    )
    assert ("k8s.io/dynamic-resource-allocation", staging) in pinned
    assert {version for _, version in pinned} == {staging}


def test_a_whole_gpu_goes_to_one_claim_only(running_oracle: oracle.Oracle) -> None:
    claims = [a_claim(name) for name in ("a", "b", "c")]
    first, second, third = one_after_another(running_oracle, gpus(2), claims)
    assert [given(first), given(second)] == [[["gpu-0"]], [["gpu-1"]]]
    assert third == oracle.Unallocated("")


def test_rendered_slices_are_accepted_unchanged(running_oracle: oracle.Oracle) -> None:
    taints = (slices.Taint("ration.dev/allocator", "controller", "NoSchedule"),)
    devices = tuple(
        slices.Device(
            ids.DeviceName(f"gpu-{number:02}"),
            {"type": "gpu", "index": number, "driverVersion": attributes.Version("580.105.8")},
            {"memory": capacities.Capacity(quantities.from_bytes(80 * 2**30))},
            taints,
        )
        for number in range(70)
    )
    groups = tuple(slice_builder.Group(device.name, (device,), {}) for device in devices)
    pool = slice_builder.Pool("gpu.example.com", NODE, groups)
    rendered = slice_builder.render(pool, slice_builder.Owner(ids.NodeName(NODE), "uid"), 1)
    chosen = {
        "cel": {
            "expression": 'device.capacity["gpu.example.com"].memory.isGreaterThan('
            'quantity("79Gi")) && device.attributes["gpu.example.com"].index == 69'
        }
    }
    claim = a_claim("a", selectors=[chosen], tolerations=[{"operator": "Exists"}])
    assert len(rendered) == 2
    assert given(running_oracle.allocate(a_scenario([], claim, slices=rendered))) == [["gpu-69"]]


def test_claims_asked_together_are_allocated_together_or_not_at_all(
    running_oracle: oracle.Oracle,
) -> None:
    both = (a_claim("a", 2), a_claim("b", 1))
    assert given(running_oracle.allocate(a_scenario(gpus(3), *both))) == [
        ["gpu-0", "gpu-1"],
        ["gpu-2"],
    ]
    assert running_oracle.allocate(a_scenario(gpus(2), *both)) == oracle.Unallocated("")


def test_all_takes_every_device_and_none_while_one_is_taken(running_oracle: oracle.Oracle) -> None:
    answer = running_oracle.allocate(a_scenario(gpus(3), every_gpu("all")))
    assert given(answer) == [["gpu-0", "gpu-1", "gpu-2"]]
    _, late = one_after_another(running_oracle, gpus(3), [a_claim("one"), every_gpu("all")])
    assert isinstance(late, oracle.Unallocated)


def test_faces_that_draw_on_one_counter_exclude_each_other(running_oracle: oracle.Oracle) -> None:
    def face(name: str, memory: str) -> Raw:
        uses = [{"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}]
        return {**a_device(name), "consumesCounters": uses}

    counters: Raw = objects.a_slice(NODE, [], resourceSliceCount=2, part=0)
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [
        {"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}
    ]
    faces = [face("a-half", "40Gi"), face("b-half", "40Gi"), face("whole", "80Gi")]
    published = [counters, objects.a_slice(NODE, faces, resourceSliceCount=2, part=1)]

    halves = [a_claim(name) for name in ("a", "b", "c")]
    first, second, third = one_after_another(running_oracle, [], halves, slices=published)
    assert [given(first), given(second)] == [[["a-half"]], [["b-half"]]]
    assert third == oracle.Unallocated("")

    whole = objects.a_claim("whole", status=objects.allocated(NODE, "whole"))
    taken = a_scenario([], halves[0], slices=published, allocated=[whole])
    assert running_oracle.allocate(taken) == oracle.Unallocated("")


def test_shares_are_rounded_up_to_the_step_and_counted_to_the_limit(
    running_oracle: oracle.Oracle,
) -> None:
    policy = {
        "default": "10Gi",
        "validRange": {"min": "10Gi", "max": "80Gi", "step": "10Gi"},
    }
    memory = {"memory": {"value": "80Gi", "requestPolicy": policy}}
    shared = [a_device("shares", allowMultipleAllocations=True, capacity=memory)]
    claims = [of_memory(name, size) for name, size in (("a", "20Gi"), ("b", "25Gi"), ("c", "21Gi"))]
    claims += [of_memory("d", "1Gi"), a_claim("e")]
    answers = one_after_another(running_oracle, shared, claims)
    fitting = [answer for answer in answers if isinstance(answer, oracle.Allocated)]
    assert [allocated.devices[0][0].consumed for allocated in fitting] == [
        {"memory": "20Gi"},
        {"memory": "30Gi"},
        {"memory": "30Gi"},
    ]
    assert len({allocated.devices[0][0].share_id for allocated in fitting}) == 3
    assert answers[3:] == [oracle.Unallocated(""), oracle.Unallocated("")]


def test_a_share_without_a_request_takes_the_default(running_oracle: oracle.Oracle) -> None:
    policy = {"default": "10Gi", "validRange": {"min": "10Gi"}}
    memory = {"memory": {"value": "80Gi", "requestPolicy": policy}}
    shared = [a_device("shares", allowMultipleAllocations=True, capacity=memory)]
    answer = running_oracle.allocate(a_scenario(shared, a_claim("a")))
    assert isinstance(answer, oracle.Allocated)
    assert answer.devices[0][0].consumed == {"memory": "10Gi"}


def test_a_tainted_device_goes_to_claims_that_tolerate_it(running_oracle: oracle.Oracle) -> None:
    devices = gpus(1, taints=[TAINT])
    key = TAINT["key"]
    assert running_oracle.allocate(a_scenario(devices, a_claim("a"))) == oracle.Unallocated("")
    for toleration in ({"operator": "Exists"}, {"key": key, "value": "yes"}):
        tolerant = a_claim("a", tolerations=[toleration])
        assert given(running_oracle.allocate(a_scenario(devices, tolerant))) == [["gpu-0"]]
    other = a_claim("a", tolerations=[{"key": key, "value": "no"}])
    assert running_oracle.allocate(a_scenario(devices, other)) == oracle.Unallocated("")


@pytest.mark.parametrize(
    ("selector", "left"),
    [
        ({"pool": NODE, "device": "gpu-0"}, ["gpu-1"]),
        ({"driver": "other.example.com"}, ["gpu-0"]),
        (None, ["gpu-0"]),
    ],
)
def test_a_taint_rule_taints_the_devices_it_selects(
    running_oracle: oracle.Oracle, selector: Raw | None, left: list[str]
) -> None:
    spec = {"taint": TAINT} if selector is None else {"taint": TAINT, "deviceSelector": selector}
    rule = {"metadata": {"name": "rule"}, "spec": spec}
    scenario = a_scenario(gpus(2), a_claim("a"), taint_rules=[rule])
    assert given(running_oracle.allocate(scenario)) == [left]
    assert given(running_oracle.allocate(a_scenario(gpus(2), a_claim("a")))) == [["gpu-0"]]


def test_nothing_is_allocated_from_an_incomplete_pool(running_oracle: oracle.Oracle) -> None:
    part = [objects.a_slice(NODE, gpus(2), resourceSliceCount=2)]
    assert running_oracle.allocate(a_scenario([], a_claim("a"), slices=part)) == oracle.Unallocated(
        ""
    )
    with pytest.raises(oracle.OracleError, match="currently being updated") as raised:
        running_oracle.allocate(a_scenario([], every_gpu("a"), slices=part))
    assert raised.value.where == "allocator"


def test_a_pool_that_names_a_device_twice_is_refused_with_the_reason(
    running_oracle: oracle.Oracle,
) -> None:
    answer = running_oracle.allocate(a_scenario([a_device("twin"), a_device("twin")], a_claim("a")))
    assert answer == oracle.Unallocated("invalid resource pools were encountered")


def test_a_slice_of_an_older_generation_does_not_count(running_oracle: oracle.Oracle) -> None:
    both = [
        objects.a_slice(NODE, gpus(8), generation=1, part=0),
        objects.a_slice(NODE, gpus(1), generation=2, part=1),
    ]
    assert given(running_oracle.allocate(a_scenario([], every_gpu("a"), slices=both))) == [
        ["gpu-0"]
    ]


def test_admin_access_takes_nothing_and_is_given_on_what_others_hold(
    running_oracle: oracle.Oracle,
) -> None:
    claims = [a_claim("watch", adminAccess=True), a_claim("work"), a_claim("see", adminAccess=True)]
    answers = one_after_another(running_oracle, gpus(1), claims)
    assert [given(answer) for answer in answers] == [[["gpu-0"]]] * 3
    watching = answers[0]
    assert isinstance(watching, oracle.Allocated)
    assert watching.devices[0][0].admin_access


def test_the_first_alternative_that_fits_is_taken(running_oracle: oracle.Oracle) -> None:
    alternatives = [
        {"name": "two", "deviceClassName": CLASS, "count": 2},
        {"name": "one", "deviceClassName": CLASS},
    ]
    claim = objects.a_claim("a", {"name": "gpu", "firstAvailable": alternatives})
    answer = running_oracle.allocate(a_scenario(gpus(1), claim))
    assert isinstance(answer, oracle.Allocated)
    assert [device.request for device in answer.devices[0]] == ["gpu/one"]


def test_devices_of_another_node_are_not_offered(running_oracle: oracle.Oracle) -> None:
    elsewhere = [objects.a_slice("node-b", gpus(1))]
    scenario = a_scenario([], a_claim("a"), slices=elsewhere)
    assert running_oracle.allocate(scenario) == oracle.Unallocated("")


def test_a_slice_may_choose_nodes_by_their_labels(running_oracle: oracle.Oracle) -> None:
    by_label: Raw = objects.a_slice(NODE, gpus(1))
    del by_label["spec"]["nodeName"]
    desired = {"key": "rack", "operator": "In", "values": ["r1"]}
    terms = [{"matchExpressions": [desired]}]
    by_label["spec"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    for rack, expected in (("r1", oracle.Allocated), ("r2", oracle.Unallocated)):
        scenario = a_scenario([], a_claim("a"), slices=[by_label], labels={"rack": rack})
        assert isinstance(running_oracle.allocate(scenario), expected)


def test_a_feature_gate_that_is_off_changes_the_answer(running_oracle: oracle.Oracle) -> None:
    tainted = gpus(1, taints=[TAINT])
    off = a_scenario(tainted, a_claim("a"), features={"DRADeviceTaints": False})
    assert given(running_oracle.allocate(off)) == [["gpu-0"]]
    conditional = gpus(1, bindingConditions=["ready"], bindingFailureConditions=["failed"])
    standard = running_oracle.allocate(a_scenario(conditional, a_claim("a")))
    assert isinstance(standard, oracle.Allocated)
    assert standard.allocations[0]["devices"]["results"][0]["bindingConditions"] == ["ready"]
    off = a_scenario(conditional, a_claim("a"), features={"DRADeviceBindingConditions": False})
    assert running_oracle.allocate(off) == oracle.Unallocated("")


@pytest.mark.parametrize(
    ("more", "location", "description"),
    [
        ({"slices": [{"spec": {"pools": 1}}]}, "slices[0]", 'unknown field "spec.pools"'),
        ({"slices": [{"kind": "Pod", "apiVersion": "v1"}]}, "slices[0]", "Kind=ResourceSlice"),
        ({"slices": {}}, "slices", "cannot unmarshal object"),
        ({"classes": [{}, {"spec": 7}]}, "classes[1]", "cannot unmarshal number"),
        ({"allocated": [a_claim("a")]}, "allocated[0].status.allocation", "an allocation"),
        ({"features": {"DRA": True}}, "features.DRA", "expected one of DRAAdminAccess"),
        ({"classes": []}, "allocator", f'"{CLASS}" not found'),
        ({"classes": [a_class("device.foo")]}, "allocator", "CEL compile error"),
    ],
)
def test_a_wrong_scenario_is_answered_with_what_and_where(
    running_oracle: oracle.Oracle, more: Raw, location: str, description: str
) -> None:
    with pytest.raises(oracle.OracleError) as raised:
        running_oracle.allocate(a_scenario(gpus(1), a_claim("a"), **more))
    assert raised.value.where == location
    assert description in raised.value.what
    assert given(running_oracle.allocate(a_scenario(gpus(1), a_claim("a")))) == [["gpu-0"]]


def test_a_claim_that_is_allocated_already_and_no_claim_at_all_are_refused(
    running_oracle: oracle.Oracle,
) -> None:
    done = objects.a_claim("a", status=objects.allocated(NODE, "gpu-0"))
    for claims, location in (((done,), "claims[0].status.allocation"), ((), "claims")):
        with pytest.raises(oracle.OracleError) as raised:
            running_oracle.allocate(a_scenario(gpus(1), *claims))
        assert raised.value.where == location


def test_a_program_that_ended_is_named_as_such(built: Path) -> None:
    with oracle.Oracle(built) as running:
        running._process.kill()
        running._process.wait()
        with pytest.raises(oracle.OracleError, match="process: ended with status -9"):
            running.allocate(a_scenario(gpus(1), a_claim("a")))

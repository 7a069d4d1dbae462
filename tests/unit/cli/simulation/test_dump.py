import copy
from collections.abc import Iterator
from typing import Any

import pytest

from driver import ids
from driver.cli.simulation import dump
from driver.scheduling.snapshot import cluster_state
from tests.properties import drawing
from tests.support.builders import objects

DRA = "resource.k8s.io/v1"
SCHEDULING = "scheduling.k8s.io/v1"


def raw(kind: str, obj: objects.Raw, version: str = "v1") -> objects.Raw:
    return {"kind": kind, "apiVersion": version, **obj}


def a_cluster() -> list[objects.Raw]:
    """One of each kind that deciding looks at."""
    bound = {"metadata": objects.meta("data"), "spec": {"volumeName": "disk"}}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
    only_here = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    taint = {"key": "example.com/old", "effect": "NoSchedule"}
    rule = {"spec": {"taint": taint, "deviceSelector": {"device": "gpu-7"}}}
    template = {"spec": {"spec": {"devices": {"requests": [objects.a_request()]}}}}
    return [
        raw("Node", objects.a_node()),
        raw("ResourceSlice", objects.a_slice(), DRA),
        raw("DeviceClass", objects.a_class(), DRA),
        raw("ResourceClaim", objects.a_claim(status=objects.allocated("node-a", "gpu-0")), DRA),
        raw("ResourceClaimTemplate", {"metadata": objects.meta("one-gpu"), **template}, DRA),
        raw("Pod", objects.a_pod(nodeName="node-a")),
        raw("PersistentVolumeClaim", bound),
        raw("PersistentVolume", {"metadata": objects.meta("disk", None), "spec": only_here}),
        raw("DeviceTaintRule", {"metadata": objects.meta("rule", None), **rule}, DRA),
        raw("PriorityClass", {"metadata": objects.meta("high", None), "value": 7}, SCHEDULING),
    ]


def test_every_kind_is_read_into_the_picture_that_the_controller_has() -> None:
    result = dump.read(a_cluster())
    assert not result.problems
    view = cluster_state.build("gpu.ration.dev", result.caches)
    assert view.usage[ids.NodeName("node-a")].pod_count == 1
    assert view.used_devices(view.pools["gpu.ration.dev", "node-a"]) == {"gpu-0"}
    assert [*view.storage.claims] == ["default/data"]
    taints = view.pools["gpu.ration.dev", "node-a"].devices["gpu-7"].taints
    assert "example.com/old" in {taint.key for taint in taints}
    assert [*result.templates] == ["default/one-gpu"]
    assert result.priorities == {"high": dump.Priority(7)}


def test_a_list_is_read_as_its_items_with_or_without_their_kind() -> None:
    objs = a_cluster()
    apart = dump.read(objs)
    as_list = dump.read([{"kind": "List", "apiVersion": "v1", "items": objs}])
    bare = [{k: v for k, v in obj.items() if k not in {"kind", "apiVersion"}} for obj in objs]
    listings = [
        {"kind": f"{obj['kind']}List", "apiVersion": obj["apiVersion"], "items": [document]}
        for obj, document in zip(objs, bare, strict=True)
    ]
    drawn = [
        drawing.shown(cluster_state.build("gpu.ration.dev", result.caches))
        for result in (apart, as_list, dump.read(listings))
    ]
    assert drawn[0] == drawn[1] == drawn[2]


def test_an_empty_list_holds_nothing() -> None:
    result = dump.read([{"kind": "List", "apiVersion": "v1", "items": None}])
    assert (result.problems, result.caches.nodes) == ((), {})


def test_kinds_that_decide_nothing_are_counted_and_left_out() -> None:
    result = dump.read([{"kind": "Secret"}, {"kind": "Service"}, {"kind": "Secret"}])
    assert (result.ignored, result.problems) == ({"Secret": 2, "Service": 1}, ())


def test_an_unreadable_object_is_reported_by_kind_name_and_field_and_skipped() -> None:
    bad = raw("Node", objects.a_node("node-b"))
    bad["status"]["allocatable"]["cpu"] = "many"
    result = dump.read([bad, *a_cluster()])
    assert [str(problem) for problem in result.problems] == [
        (
            "Node node-b: status.allocatable.cpu: 'many' is not a quantity; "
            "expected such as 80Gi, 1500m or 1e3"
        )
    ]
    assert [*result.caches.nodes] == ["node-a"]


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (["Node"], "object (without a name): is list; expected an API object"),
        ({"metadata": {"name": "x"}}, "object x: kind: is missing; expected a string"),
        ({"kind": 7}, "7 (without a name): kind: is int; expected a string"),
        ({"kind": "Pod"}, "Pod (without a name): apiVersion: is missing; expected a string"),
        (
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "a"}},
            "Pod (without a name): metadata.name: is missing; expected a string",
        ),
        (
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": []},
            "Pod default/p: spec: is list; expected an object",
        ),
        (
            {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1beta1", "metadata": {}},
            (
                "ResourceSlice (without a name): apiVersion: is resource.k8s.io/v1beta1; "
                "expected resource.k8s.io/v1"
            ),
        ),
        (
            {"kind": "ResourceClaimTemplate", "apiVersion": DRA, "metadata": {"name": "t"}},
            "ResourceClaimTemplate default/t: spec.spec: is missing; expected what the claims ask",
        ),
    ],
)
def test_a_malformed_object_is_a_problem_in_words(obj: Any, words: str) -> None:
    result = dump.read([obj])
    assert [str(problem) for problem in result.problems] == [words]


def test_the_first_of_duplicate_objects_counts() -> None:
    result = dump.read([raw("Node", objects.a_node()), raw("Node", objects.a_node(x=1))])
    assert [str(problem) for problem in result.problems] == [
        "Node node-a: is there twice; the first one counts"
    ]


def test_objects_without_a_namespace_or_uid_get_those_that_their_names_give() -> None:
    def bare() -> objects.Raw:
        return raw("Pod", {"metadata": {"name": "p"}, "spec": {}})

    pod = dump.read([bare()]).caches.pods[ids.Key("default/p")]
    again = dump.read([bare()]).caches.pods[ids.Key("default/p")]
    other = dump.read([bare()], namespace="team").caches.pods[ids.Key("team/p")]
    assert pod.uid == again.uid != other.uid


WRONG: tuple[Any, ...] = (
    None,
    1,
    -5,
    1.5,
    True,
    "x",
    "",
    [],
    {},
    [1],
    [None],
    {"a": 1},
    {"a": None},
    "9" * 70,
    [[]],
)


@pytest.mark.parametrize("index", range(10))
def test_no_value_in_no_field_ends_the_reading(index: int) -> None:
    obj = a_cluster()[index]
    for path in places(obj):
        for value in WRONG:
            result = dump.read([replaced(obj, path, value), raw("Node", objects.a_node("last"))])
            assert "last" in result.caches.nodes


def places(obj: Any, position: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = obj.items() if isinstance(obj, dict) else enumerate(obj)
    for key, entry in inner:
        yield (*position, key)
        if isinstance(entry, dict | list):
            yield from places(entry, (*position, key))


def replaced(obj: objects.Raw, path: tuple[Any, ...], value: Any) -> objects.Raw:
    copied: Any = copy.deepcopy(obj)
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return dict(copied)

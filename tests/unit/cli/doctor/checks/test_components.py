from pathlib import Path

import yaml

from driver.cli import permissions
from driver.cli.doctor import checks
from driver.cli.doctor.checks import components, facts, findings
from tests.fakes import doctored
from tests.support.builders import objects

State = findings.State
GET_NODES = permissions.Right("get", "nodes")
CHART = Path(__file__).parents[5] / "tests" / "data" / "chart" / "default.yaml"


def a_pod(component: str, image: str) -> doctored.Object:
    pod = doctored.a_pod(component)
    pod["spec"]["containers"] = [{"name": "main", "image": image}]
    return pod


def test_components_of_several_images_are_wrong() -> None:
    pods = (a_pod("controller", "ration:1"), a_pod("kubeletplugin", "ration:2"))
    one = doctored.found("versions", pods=pods)
    assert (one.state, one.message) == (
        State.WRONG,
        "components are of several images: ration:1: controller; ration:2: kubeletplugin",
    )
    one = doctored.found("versions", pods=pods[:1])
    assert (one.state, one.message) == (State.FINE, "all components are of image ration:1")


def test_a_right_that_lacks_is_named_with_how_to_see_it() -> None:
    answers = (
        facts.Right(
            "controller", "ration-controller", permissions.Right("list", "pods"), given=True
        ),
        facts.Right("kubeletplugin", "ration-kubeletplugin", GET_NODES, given=False),
    )
    one = doctored.found("rights", given=answers)
    assert (one.state, one.message) == (State.WRONG, "kubeletplugin may not get nodes")
    assert one.fix.endswith(
        "can-i get nodes --as system:serviceaccount:ration-system:ration-kubeletplugin"
    )
    assert doctored.found("rights", given=answers[:1]).state is State.FINE


def test_who_may_not_ask_about_rights_is_told_and_nothing_is_wrong() -> None:
    unseen = facts.Unreadable("create subjectaccessreviews", "API server: 403", forbidden=True)
    assert doctored.found("rights", given=unseen).state is State.NOTE


def test_the_rights_that_are_asked_about_are_among_those_that_the_chart_gives() -> None:
    given: dict[str, set[tuple[str, str, str]]] = {}
    for one in yaml.safe_load_all(CHART.read_text()):
        if one and one["kind"] == "ClusterRole":
            component = one["metadata"]["labels"].get(components.COMPONENT, "")
            given.setdefault(component, set()).update(
                (group, kind, verb)
                for rule in one["rules"]
                for group in rule.get("apiGroups", ())
                for kind in rule.get("resources", ())
                for verb in rule["verbs"]
            )
    for component, needed in components.NEEDED.items():
        assert {*needed} <= given[component]


def test_feature_gates_are_told_where_the_server_tells_them() -> None:
    assert "feature gates" not in doctored.states()
    on = {"DRAPartitionableDevices": True, "DRADeviceTaintRules": False}
    states = {
        one.message: one.state
        for one in checks.run(doctored.healthy(gates=on))
        if one.check == "feature gates"
    }
    assert states == {
        "feature gate DRADeviceTaintRules is off in the API server: nodes are cordoned by their "
        "annotation": State.NOTE,
        "those that Ration needs are on in the API server": State.FINE,
    }
    one = doctored.found("feature gates", gates={"DRAConsumableCapacity": False})
    assert (one.state, "DRAConsumableCapacity=true" in one.fix) == (State.WRONG, True)


def test_a_node_without_devices_says_what_its_plugin_says() -> None:
    def event(at: str, note: str, **more: object) -> doctored.Object:
        return {
            "metadata": objects.meta(note),
            "reportingController": "ration-kubeletplugin",
            "type": "Warning",
            "reason": "DriverNotReady",
            "note": note,
            "eventTime": at,
            "regarding": {"kind": "Node", "name": "node-a"},
            **more,
        }

    told = (
        event("2026-11-22T11:00:00Z", "old"),
        event("2026-11-22T10:00:00Z", "new", series={"lastObservedTime": "2026-11-22T11:30:00Z"}),
        event("2026-11-22T11:59:00Z", "of another", regarding={"kind": "Node", "name": "node-b"}),
        event("2026-11-22T11:59:00Z", "good news", type="Normal"),
    )
    node = doctored.a_node("node-a", labels={"nvidia.com/gpu.present": "true"})
    one = doctored.found("devices", nodes=(node,), slices=(), events=told)
    assert one.message == "nothing is published: DriverNotReady: new"

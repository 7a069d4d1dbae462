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
    finding = doctored.found("versions", pods=pods)
    assert (finding.state, finding.message) == (
        State.WRONG,
        "components are of several images: ration:1: controller; ration:2: kubeletplugin",
    )
    finding = doctored.found("versions", pods=pods[:1])
    assert (finding.state, finding.message) == (State.FINE, "all components are of image ration:1")


def test_a_right_that_lacks_is_named_with_how_to_see_it() -> None:
    answers = (
        facts.Right(
            "controller", "ration-controller", permissions.Right("list", "pods"), given=True
        ),
        facts.Right("kubeletplugin", "ration-kubeletplugin", GET_NODES, given=False),
    )
    finding = doctored.found("rights", given=answers)
    assert (finding.state, finding.message) == (State.WRONG, "kubeletplugin may not get nodes")
    assert finding.fix.endswith(
        "can-i get nodes --as system:serviceaccount:ration-system:ration-kubeletplugin"
    )
    assert doctored.found("rights", given=answers[:1]).state is State.FINE


def test_a_missing_right_to_review_access_is_reported_without_a_problem() -> None:
    unseen = facts.Unreadable("create subjectaccessreviews", "API server: 403", forbidden=True)
    assert doctored.found("rights", given=unseen).state is State.NOTE


def test_the_rights_that_are_asked_about_are_among_those_that_the_chart_gives() -> None:
    fields: dict[str, set[tuple[str, str, str]]] = {}
    for entry in yaml.safe_load_all(CHART.read_text()):
        if entry and entry["kind"] == "ClusterRole":
            component = entry["metadata"]["labels"].get(components.COMPONENT, "")
            fields.setdefault(component, set()).update(
                (group, kind, verb)
                for rule in entry["rules"]
                for group in rule.get("apiGroups", ())
                for kind in rule.get("resources", ())
                for verb in rule["verbs"]
            )
    for component, needed in components.NEEDED.items():
        assert {*needed} <= fields[component]


def test_feature_gates_are_told_where_the_server_tells_them() -> None:
    assert "feature gates" not in doctored.states()
    on = {"DRAPartitionableDevices": True, "DRADeviceTaintRules": False}
    states = {
        item.message: item.state
        for item in checks.run(doctored.healthy(gates=on))
        if item.check == "feature gates"
    }
    assert states == {
        "feature gate DRADeviceTaintRules is off in the API server: nodes are cordoned by their "
        "annotation": State.NOTE,
        "those that Ration needs are on in the API server": State.FINE,
    }
    finding = doctored.found("feature gates", gates={"DRAConsumableCapacity": False})
    assert (finding.state, "DRAConsumableCapacity=true" in finding.fix) == (State.WRONG, True)


def test_a_node_without_devices_says_what_its_plugin_says() -> None:
    def event(time: str, note: str, **more: object) -> doctored.Object:
        return {
            "metadata": objects.meta(note),
            "reportingController": "ration-kubeletplugin",
            "type": "Warning",
            "reason": "DriverNotReady",
            "note": note,
            "eventTime": time,
            "regarding": {"kind": "Node", "name": "node-a"},
            **more,
        }

    values = (
        event("2026-11-22T11:00:00Z", "old"),
        event("2026-11-22T10:00:00Z", "new", series={"lastObservedTime": "2026-11-22T11:30:00Z"}),
        event("2026-11-22T11:59:00Z", "of another", regarding={"kind": "Node", "name": "node-b"}),
        event("2026-11-22T11:59:00Z", "good news", type="Normal"),
    )
    node = doctored.a_node("node-a", labels={"nvidia.com/gpu.present": "true"})
    finding = doctored.found("devices", nodes=(node,), slices=(), events=values)
    assert finding.message == "nothing is published: DriverNotReady: new"

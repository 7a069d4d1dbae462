import pytest

from driver import errors
from driver.cli.migrate import config_files, plan
from driver.cli.migrate import nodes as migrate_nodes

SHARED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: %s}]}}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version: v2", "version"),
        ("flags: {migStrategy: sometimes}", "flags.migStrategy"),
        (SHARED % "0", "sharing.timeSlicing.resources[0].replicas"),
        (SHARED % "'4'", "sharing.timeSlicing.resources[0].replicas"),
        (SHARED % "4, devices: some", "resources[0].devices"),
        (SHARED % "4, devices: [GPU-1]", "resources[0].devices"),
        ("sharing: {mps: {resources: []}}", "sharing.mps.resources"),
        ("sharing: {mps: {}}", "sharing.mps.resources"),
        ("imex: {channelIDs: [1]}", "imex.channelIDs[0]"),
        ("flags: {plugin: {deviceListStrategy: 3}}", "flags.plugin.deviceListStrategy"),
        ("version: v1\nversion: v1", "line 2: version stands twice"),
        ("flags: [", "is no YAML"),
        ("", "is empty"),
        ("- 1", "is list"),
        ("kind: Deployment", "is a Deployment"),
        ("color: green", "says nothing that is known"),
        ("version: v1\nmig-configs: {}", "the MIG manager reads"),
        ("kind: ConfigMap\ndata: {a: '- 1'}", "data.a"),
    ],
)
def test_configurations_the_device_plugin_refuses_are_refused_with_the_field(
    text: str, words: str
) -> None:
    with pytest.raises(errors.BadInput) as refused:
        plan.build_plan(config_files.read_configs({"old.yaml": text}), None, plan.PlanOptions())
    assert words in str(refused.value)


def test_a_default_that_is_not_there_is_refused() -> None:
    with pytest.raises(errors.BadInput, match="nope is no configuration here"):
        plan.build_plan(
            config_files.read_configs({"a": "version: v1"}), None, plan.PlanOptions(default="nope")
        )


def test_two_configurations_without_a_name_are_refused() -> None:
    with pytest.raises(errors.BadInput, match="another configuration config"):
        config_files.read_configs({"a": "version: v1\n---\nversion: v1"})


def test_two_configurations_of_one_name_are_refused() -> None:
    name = "kind: ConfigMap\nmetadata: {name: a}\ndata: {x: 'version: v1'}"
    with pytest.raises(errors.BadInput, match="another configuration x"):
        config_files.read_configs({"a": name, "b": name})


def test_a_configmap_that_is_named_and_not_given_is_asked_for() -> None:
    values = "config: {name: elsewhere}\nmigStrategy: none"
    created = plan.build_plan(
        config_files.read_configs({"values.yaml": values}), None, plan.PlanOptions()
    )
    assert any("ConfigMap elsewhere" in name for name in created.open)


def test_other_keys_of_a_configmap_are_named() -> None:
    text = "kind: ConfigMap\nmetadata: {name: a}\ndata: {x: ''}\nbinaryData: {y: AA==}"
    (note,) = config_files.read_configs({"a": text}).notes
    assert (note.path, note.fate) == ("binaryData", "unknown")


@pytest.mark.parametrize(
    ("names", "default", "operator", "usual"),
    [
        (("a", "b"), "b", False, "b"),
        (("a", "b"), "b", True, "b"),
        (("a", "default"), "", False, "default"),
        (("a",), "", False, "a"),
        (("a", "b"), "", False, None),
        (("a",), "", True, ""),
        (("default",), "", True, ""),
        ((), "", False, ""),
    ],
)
def test_a_node_without_the_label_has_what_the_device_plugin_falls_back_to(
    names: tuple[str, ...],
    default: str,
    operator: bool,  # noqa: FBT001 - a row of the table
    usual: str | None,
) -> None:
    assert migrate_nodes.Selection(names, default, operator).usual == usual


@pytest.mark.parametrize(
    "document", [None, "text", 3, {"kind": "Pod"}, {"kind": "List"}, [], [{"kind": "Pod"}], [3]]
)
def test_a_document_without_nodes_is_refused(document: object) -> None:
    with pytest.raises(errors.BadInput, match="kubectl get nodes -o json"):
        migrate_nodes.read(document, "nodes.json")


def test_a_single_node_and_a_list_are_read() -> None:
    node = {"kind": "Node", "metadata": {"name": "a"}, "status": {"capacity": {"cpu": "4"}}}
    (alone,) = migrate_nodes.read(node, "n")
    (listed,) = migrate_nodes.read({"kind": "NodeList", "items": [node]}, "n")
    assert alone == listed
    assert not alone.has_gpus

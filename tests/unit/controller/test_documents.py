from pathlib import Path

import pytest

from driver import errors, names
from driver.controller import config, documents

SHAPES = """
apiVersion: resource.ration.dev/v1alpha1
kind: NodeShapes
ttl: 5m
shapes:
- name: h100-8
  labels: {node.kubernetes.io/instance-type: p5.48xlarge}
  gpus: 8
"""


def test_the_shapes_of_nodes_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shapes.yaml"
    path.write_text(SHAPES)
    node_shapes = documents.read_node_shapes(path)
    assert (node_shapes.ttl, [shape.name for shape in node_shapes.shapes]) == ("5m", ["h100-8"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SHAPES.replace("gpus: 8", "gpus: many"), "shapes.yaml.shapes.0.gpus"),
        ("- not a mapping", "is list; expected a YAML mapping"),
        ("{", "expected a NodeShapes document"),
    ],
)
def test_a_document_that_cannot_be_read_is_told_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "shapes.yaml"
    path.write_text(text)
    with pytest.raises(errors.BadInput) as met:
        documents.read_node_shapes(path)
    assert message in str(met.value)


def test_managed_drivers_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "managed.yaml"
    path.write_text("drivers: [{name: gpu.example.com, nodeSelector: team=gpu}]")
    (driver,) = documents.read_managed_drivers(path, names.DRIVER)
    assert driver.name == "gpu.example.com"
    assert driver.nodes is not None
    assert driver.nodes.matches({"team": "gpu"})
    assert documents.read_managed_drivers(None, names.DRIVER) == ()
    path.write_text(f"drivers: [{{name: {names.DRIVER}}}]")
    with pytest.raises(errors.BadInput, match=r"managed\.yaml\.drivers\.0\.name"):
        documents.read_managed_drivers(path, names.DRIVER)


def test_no_node_is_interrupted_where_the_taints_are_said_to_be_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller_config = config.ControllerConfig.read(["--interruption-taints="])
    assert controller_config.interruption_taints == ()
    controller_config = config.ControllerConfig.read(
        ["--interruption-taints=a", "--interruption-taints=b/c"]
    )
    assert controller_config.interruption_taints == ("a", "b/c")
    monkeypatch.setenv("RATION_INTERRUPTION_TAINTS", "d,e")
    assert config.ControllerConfig.read([]).interruption_taints == ("d", "e")

"""Tests of the records of components."""

from pathlib import Path

from hack.cluster import control, layout, node, processes


def record(lab: layout.Layout, component: str, location: str | None) -> None:
    spec = processes.Spec(component=component, node=location, argv=("true",), cwd="/", log="/log")
    processes.Record(spec=spec).write(control.record_path(lab, component, location))


def test_components_of_other_drivers_are_known_by_their_node_until_they_are_forgotten(
    tmp_path: Path,
) -> None:
    lab = layout.Layout(tmp_path, name="")
    lab.records.mkdir(parents=True)
    rows = [
        ("etcd", None),
        ("gpu.example.com", "node-0"),
        ("gpu.example.com", "node-1"),
        ("kubelet", "node-0"),
        ("plugin", "node-0"),
    ]
    for component, location in rows:
        record(lab, component, location)
    assert sorted(control.recorded(lab), key=str) == sorted(rows, key=str)
    assert node.foreign(lab, "node-0") == ("gpu.example.com",)
    control.forget(lab, "gpu.example.com", "node-0")
    assert node.foreign(lab, "node-0") == ()
    assert node.foreign(lab, "node-1") == ("gpu.example.com",)

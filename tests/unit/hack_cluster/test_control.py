"""Tests of the records of components."""

from pathlib import Path

from hack.cluster import control, layout, node, processes


def record(where: layout.Layout, component: str, location: str | None) -> None:
    spec = processes.Spec(component=component, node=location, argv=("true",), cwd="/", log="/log")
    processes.Record(spec=spec).write(control.record_path(where, component, location))


def test_components_of_other_drivers_are_those_of_a_node_that_it_has_besides_its_own(
    tmp_path: Path,
) -> None:
    where = layout.Layout(tmp_path, name="")
    where.records.mkdir(parents=True)
    rows = [
        ("etcd", None),
        ("gpu.example.com", "node-0"),
        ("gpu.example.com", "node-1"),
        ("kubelet", "node-0"),
        ("plugin", "node-0"),
    ]
    for component, location in rows:
        record(where, component, location)
    assert sorted(control.recorded(where), key=str) == sorted(rows, key=str)
    assert node.foreign(where, "node-0") == ("gpu.example.com",)
    control.forget(where, "gpu.example.com", "node-0")
    assert node.foreign(where, "node-0") == ()
    assert node.foreign(where, "node-1") == ("gpu.example.com",)

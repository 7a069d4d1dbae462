import json
from pathlib import Path

import pytest

from driver import ids
from driver.kubeletplugin.records import quarantine
from driver.resources.core import nodes
from tests.fakes import clock as fake_clock

GPU, OTHER = ids.GpuUuid("GPU-a"), ids.GpuUuid("GPU-b")


class World:
    """A node's memory, and the plugins that had it one after the other."""

    def __init__(self, base: Path) -> None:
        self.file = base / "state" / "quarantine.json"
        self.clock = fake_clock.FakeClock()
        self.restart()

    def restart(self) -> None:
        """Another process; the machine may have been rebooted."""
        self.kept = quarantine.Quarantine(self.file, self.clock)

    def fails(self, times: int = 1, gpu: ids.GpuUuid = GPU) -> None:
        for _ in range(times):
            self.kept.record(gpu, ill=True)
            self.clock.advance(60)
            self.kept.record(gpu, ill=False)

    def annotated(self, value: str) -> None:
        self.kept.update(nodes.Node(ids.NodeName("node-a"), "uid", clear_quarantine=value))

    def values(self) -> dict[str, str]:
        return {gpu: ailment.value for gpu, (ailment,) in self.kept.all_ailments().items()}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_failures_are_counted_over_restarts_by_uuid(world: World) -> None:
    for _ in range(3):
        world.fails()
        world.restart()
    world.fails(2, OTHER)
    world.restart()
    assert world.values() == {GPU: "3"}
    assert world.kept.ailments(GPU)[0].value == "3"
    assert world.kept.ailments(OTHER) == ()


def test_a_failure_that_a_restart_falls_into_is_one(world: World) -> None:
    world.fails(2)
    world.kept.record(GPU, ill=True)
    for _ in range(5):
        world.restart()
        world.kept.record(GPU, ill=True)
    assert world.values() == {}
    world.restart()
    world.kept.record(GPU, ill=False)
    assert world.values() == {GPU: "3"}


def test_an_annotation_clears_what_it_names_once(world: World) -> None:
    world.fails(3)
    world.fails(3, OTHER)
    world.annotated("GPU-a")
    assert world.values() == {OTHER: "3"}
    world.fails(3)
    world.annotated("GPU-a")
    world.restart()
    world.annotated("GPU-a")
    assert world.values() == {GPU: "3", OTHER: "3"}
    world.annotated("")
    world.annotated("GPU-a")
    assert world.values() == {OTHER: "3"}
    world.annotated("all,2026-11-22")
    world.restart()
    assert world.values() == {}


def test_an_annotation_is_read_from_a_node_as_it_is_written() -> None:
    meta = {"name": "n", "annotations": {"ration.dev/clear-quarantine": "all", "a": "b"}}
    assert nodes.parse({"metadata": meta}).clear_quarantine == "all"
    assert nodes.parse({"metadata": {"name": "n"}}).clear_quarantine == ""


def test_an_unchanged_quarantine_is_not_written(world: World) -> None:
    world.kept.record(GPU, ill=False)
    world.annotated("")
    assert not world.file.exists()
    world.kept.record(GPU, ill=True)
    written = world.file.stat().st_mtime_ns
    world.kept.record(GPU, ill=True)
    assert world.file.stat().st_mtime_ns == written


def test_failures_older_than_a_day_are_removed_from_the_file(world: World) -> None:
    world.fails()
    world.clock.advance(24 * 3600)
    world.kept.record(GPU, ill=False)
    assert json.loads(world.file.read_text()) == {"version": 1, "cleared": "", "gpus": {}}


@pytest.mark.parametrize("text", ["", "{", '{"gpus":[]}', '{"gpus":{"GPU-a":{"failures":["x"]}}}'])
def test_a_file_that_cannot_be_read_counts_as_none_and_is_written_anew(
    world: World, text: str
) -> None:
    world.fails(3)
    world.file.write_text(text)
    world.restart()
    assert world.values() == {}
    world.fails(3)
    world.restart()
    assert world.values() == {GPU: "3"}


def test_a_later_version_may_say_more_and_one_later_still_is_left_alone(world: World) -> None:
    world.fails(3)
    document = json.loads(world.file.read_text())
    world.file.write_text(json.dumps({**document, "version": 2, "more": 1}))
    world.restart()
    assert world.values() == {GPU: "3"}
    beyond = json.dumps({**document, "version": 3})
    world.file.write_text(beyond)
    world.restart()
    world.fails(3, OTHER)
    assert world.values() == {OTHER: "3"}
    assert world.file.read_text() == beyond


def test_an_unwritable_quarantine_is_kept_and_written_later(world: World) -> None:
    world.file.parent.write_text("a file where the folder is to be")
    world.fails(3)
    assert world.values() == {GPU: "3"}
    world.file.parent.unlink()
    world.kept.record(OTHER, ill=False)
    world.restart()
    assert world.values() == {GPU: "3"}

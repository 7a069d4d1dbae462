from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from driver import errors
from driver.kubeletplugin.publish import publisher_election
from tests.fakes import clock as fake_clock


class World:
    """A node's folder; a plugin's death closes what it had open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "publishers"
        self.clock = fake_clock.FakeClock()
        self.plugins: list[publisher_election.PublisherElection] = []

    def plugin(self, name: str) -> publisher_election.PublisherElection:
        self.clock.advance(1)
        self.plugins.append(publisher_election.PublisherElection(self.folder, name, self.clock))
        return self.plugins[-1]

    def names(self) -> list[str]:
        return sorted(path.name.partition("-")[2] for path in self.folder.iterdir())


def die(plugin: publisher_election.PublisherElection) -> None:
    """Without a farewell: the file stays, and nobody has it locked."""
    assert plugin._file is not None
    plugin._file.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    created = World(tmp_path)
    yield created
    for plugin in created.plugins:
        plugin.leave()


def test_a_plugin_that_is_alone_publishes(world: World) -> None:
    election = world.plugin("a")
    assert election.is_elected()
    assert election.is_elected()
    assert world.names() == ["a"]


def test_the_later_one_publishes_and_the_earlier_is_quiet(world: World) -> None:
    earlier, later = world.plugin("b"), world.plugin("a")
    assert earlier.is_elected()
    assert later.is_elected()
    assert not earlier.is_elected()
    assert later.is_elected()


def test_it_counts_from_when_it_first_wants_to_publish(world: World) -> None:
    made_first, made_second = world.plugin("a"), world.plugin("b")
    assert made_second.is_elected()
    assert made_first.is_elected()
    assert not made_second.is_elected()


@pytest.mark.parametrize("end", [die, publisher_election.PublisherElection.leave])
def test_when_the_later_one_is_gone_the_earlier_publishes_again(
    world: World, end: Callable[[publisher_election.PublisherElection], None]
) -> None:
    earlier, later = world.plugin("a"), world.plugin("b")
    earlier.is_elected()
    later.is_elected()
    assert not earlier.is_elected()
    end(later)
    assert earlier.is_elected()
    assert world.names() == ["a"]


def test_the_newest_of_three_publishes_and_then_the_next(world: World) -> None:
    plugins = [world.plugin(name) for name in "abc"]
    for plugin in plugins:
        assert plugin.is_elected()
    assert [election.is_elected() for election in plugins] == [False, False, True]
    die(plugins[2])
    assert [election.is_elected() for election in plugins[:2]] == [False, True]


def test_files_of_dead_processes_are_removed_and_others_stay(world: World) -> None:
    dead = world.plugin("dead")
    dead.is_elected()
    die(dead)
    (world.folder / "README").write_text("mine")
    assert world.plugin("a").is_elected()
    assert world.names() == ["", "a"]


def test_a_clock_that_was_put_back_does_not_make_the_later_one_the_earlier(world: World) -> None:
    earlier = world.plugin("b")
    earlier.is_elected()
    world.clock.advance(-86400)
    later = world.plugin("a")
    assert later.is_elected()
    assert not earlier.is_elected()


def test_a_file_that_somebody_removed_comes_back_under_its_name(world: World) -> None:
    earlier, later = world.plugin("a"), world.plugin("b")
    for election in (earlier, later):
        election.is_elected()
    for path in world.folder.iterdir():
        path.unlink()
    assert earlier.is_elected()
    assert later.is_elected()
    assert not earlier.is_elected()


def test_a_folder_that_cannot_be_had_is_a_fault(world: World) -> None:
    world.folder.write_text("a file")
    with pytest.raises(errors.NodeFault, match="publishers"):
        world.plugin("a").is_elected()

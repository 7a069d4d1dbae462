"""BB-5: one version of the plugin takes over from another."""

from collections.abc import Iterator

import pytest

from tests.blackbox import subject
from tests.blackbox.catalogue import CLUSTER, case
from tests.blackbox.ground import room, seat
from tests.blackbox.slice_versions import settled, written
from tests.e2e import playground

OLD, NEW = "old", "new"
SEQUENTIAL_S = 25
"""Within this the next one is to serve, or the kubelet removes the slices."""


@pytest.fixture
def old(here: seat.Seat) -> Iterator[seat.Seat]:
    """The plugin runs as one instance of several; afterwards as usual."""
    here.programs.stop()
    start(here, OLD)
    yield here
    for name in (OLD, NEW):
        if here.programs.runs(name):
            here.programs.stop(name)
    here.mend()


def start(here: seat.Seat, name: str) -> None:
    """Start an instance; it is registered when this returns."""
    previous = here.registrations()
    here.programs.start(name)
    here.registered_after(previous)
    here.wait_published()


def use(field: room.Room, name: str) -> None:
    """A pod runs with a device of its own."""
    field.claim(name)
    field.pod(name, name)
    field.running(name)
    assert len(field.has(name)) == 1


@case("BB-5.1", f"{CLUSTER}: rolling update", subject.Feature.ROLLING)
def test_a_new_instance_takes_over_while_the_old_one_runs(old: seat.Seat, field: room.Room) -> None:
    use(field, "before")
    slices = settled(old)
    start(old, NEW)
    use(field, "during")
    old.programs.stop(OLD)
    use(field, "after")
    assert written(old) == slices
    old.stays(lambda: written(old), 10, 2)
    field.delete("before", "during", "after")
    for name in ("before", "during", "after"):
        field.unprepared(name)
        codes = [entry.code for entry in (*field.prepares(name), *field.unprepares(name))]
        assert set(codes) == {"OK"}


@case("BB-5.2", f"{CLUSTER}: failed update", subject.Feature.ROLLING)
def test_an_instance_that_cannot_start_harms_nothing(old: seat.Seat, field: room.Room) -> None:
    slices = settled(old)
    flags = (*old.subject.plugin.instance, *old.subject.plugin.broken)
    code, message = old.programs.try_once(30, *flags, instance=NEW)
    assert code not in {None, 0}, message
    use(field, "still")
    field.delete("still")
    field.unprepared("still")
    assert written(old) == slices


@case(
    "BB-5.3",
    f"{CLUSTER}: sequential update with pods replacing each other",
    subject.Feature.ROLLING,
)
def test_a_new_instance_follows_the_old_one(old: seat.Seat, field: room.Room) -> None:
    use(field, "before")
    slices = settled(old)
    old.programs.stop(OLD)
    previous = old.registrations()
    old.programs.start(NEW)
    playground.until(lambda: old.registrations() > previous, SEQUENTIAL_S, "the new one serves")
    use(field, "after")
    old.stays(lambda: written(old), 30, 2)
    assert written(old) == slices
    field.delete("before", "after")
    field.unprepared("before")


@case("BB-5.4", "F-7: ours")
def test_a_restart_leaves_running_pods_alone(here: seat.Seat, field: room.Room) -> None:
    use(field, "steady")
    previous = field.ground.pod("steady")["status"]["containerStatuses"][0]["containerID"]
    here.programs.stop()
    start(here, "")
    use(field, "next")
    container_status = field.ground.pod("steady")["status"]["containerStatuses"][0]
    assert (container_status["containerID"], container_status["restartCount"]) == (previous, 0)
    field.delete("steady")
    field.unprepared("steady")

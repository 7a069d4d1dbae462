import dataclasses

import pytest

from driver import ids
from driver.devices import mps_files
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import ports
from driver.kubeletplugin.recovery import mps_holders
from driver.kubeletplugin.usage import claim_pods
from driver.resources.dra import claims
from tests.fakes import clock as fake_clock
from tests.fakes import gpunode, plugin_shell
from tests.support.builders import allocated_claims

KEY = "GPU-1"
POD, SECOND_POD = ids.PodUid("pod-1"), ids.PodUid("pod-2")
SHELL, LATER = mps_files.Holder(pid=7, user="65534"), mps_files.Holder(pid=8, user="0")


class World:
    """A daemon of one claim, whose pod is POD, and processes of pods."""

    def __init__(self) -> None:
        self.told = plugin_shell.Events()
        self.time = fake_clock.FakeClock()
        self.pods = {7: POD, 8: SECOND_POD}
        reader = gpunode.FakeReader()
        claim = dataclasses.replace(
            allocated_claims.an_allocated_claim(allocated_claims.a_result("gpu-0000-53-00-0-mps")),
            consumers=(claims.Consumer("", "pods", "trainer", POD),),
        )
        reader.claims[claim.key] = claim
        self.ref = ports.ClaimRef(claim.namespace, claim.name, claim.uid)
        self.reader = reader
        self.holders = mps_holders.MpsHolders(
            plugin_events.EventReporter(self.told),
            lambda pid: (self.pods[pid],) if pid in self.pods else (),
            claim_pods.ClaimPods(reader),
            self.time,
        )

    def look(self, *holders: mps_files.Holder, occupied: bool = True) -> list[str]:
        """The reasons of what is told, the last words of which are in `words`."""
        previous = len(self.told.told), len(self.told.good_news)
        status = mps_files.Status(
            key=KEY,
            state=mps_files.State.READY,
            boot_id="b",
            since="",
            pipe_dir="",
            log_dir="",
            occupied=occupied,
            holders=holders,
        )
        self.holders.start_round((), (KEY,))
        self.holders.check(KEY, status, (self.ref,))
        fresh = (*self.told.told[previous[0] :], *self.told.good_news[previous[1] :])
        self.words = fresh[-1][3] if fresh else ""
        return [event[2] for event in fresh]

    def stay(self, *holders: mps_files.Holder) -> list[str]:
        """Stay longer than any single command takes."""
        self.look(*holders)
        self.time.advance(mps_holders.STAYS_S)
        return self.look(*holders)


@pytest.fixture
def world() -> World:
    return World()


def test_a_single_command_of_a_tenant_is_no_news(world: World) -> None:
    assert world.look(SHELL) == []
    world.time.advance(mps_holders.STAYS_S - 1)
    assert world.look(SHELL) == []
    assert world.look(occupied=False) == []
    world.time.advance(mps_holders.STAYS_S)
    assert world.look(SHELL) == []


def test_holders_of_the_daemon_are_reported_once_with_process_user_and_pod(world: World) -> None:
    assert world.stay(SHELL) == ["MpsControlHeld"]
    assert world.words == (
        "MPS daemon of GPU-1 takes no command while process 7 of user 65534 (pod default/trainer) "
        "is connected to it with a control program"
    )
    world.time.advance(10 * mps_holders.AGAIN_S)
    assert world.look(SHELL) == []


def test_its_end_is_told_once_and_the_next_time_is_told_again(world: World) -> None:
    world.stay(SHELL)
    assert world.look(occupied=False) == ["MpsControlFreed"]
    assert world.look(occupied=False) == []
    assert world.stay(LATER) == ["MpsControlHeld"]


def test_a_pod_without_a_known_claim_is_named_by_uid(
    world: World,
) -> None:
    del world.pods[7]
    world.stay(SHELL, LATER)
    assert "process 7 of user 65534, process 8 of user 0 (pod pod-2) are connected" in world.words


def test_without_an_answer_of_the_api_server_the_pod_is_named_by_its_uid(world: World) -> None:
    world.reader.down = True
    assert world.stay(SHELL) == ["MpsControlHeld"]
    assert "(pod pod-1)" in world.words


def test_a_holder_that_is_not_seen_is_told_too(world: World) -> None:
    assert world.stay() == ["MpsControlHeld"]
    assert world.words.endswith("a control program is connected to it, which is not seen")


def test_another_holder_of_the_same_occurrence_is_told_after_a_while_only(world: World) -> None:
    world.stay(SHELL)
    assert world.look(LATER) == []
    world.time.advance(mps_holders.AGAIN_S)
    assert world.look(LATER) == ["MpsControlHeld"]
    assert "process 8" in world.words


def test_many_holders_are_counted(world: World) -> None:
    many = [mps_files.Holder(pid=pid, user="1") for pid in range(100, 120)]
    world.stay(*many)
    assert " and 15 more are connected" in world.words
    assert len(world.words) < 1024


def test_a_daemon_without_claims_is_forgotten(world: World) -> None:
    world.stay(SHELL)
    world.holders.start_round((), ())
    assert world.look(occupied=False) == []

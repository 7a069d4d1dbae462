import dataclasses
from pathlib import Path

import prometheus_client
import pytest

from driver.devices import mps_files
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics
from driver.kubeletplugin.recovery import mps_holders, mps_watch
from driver.kubeletplugin.usage import claim_pods
from tests.fakes import clock as fake_clock
from tests.fakes import gpunode, plugin_shell
from tests.support.builders import allocated_claims
from tests.support.node.shares import VERSION, a_share, prepare, release


class Said:
    """A daemon's status as its supervisor says it."""

    def __init__(self, node: gpunode.GpuNode) -> None:
        self._node = node
        self.state, self.problem, self.pid = mps_files.State.READY, "", 100
        self.first: int | None = None
        self.waiting = ""
        self.occupied = False
        self.root = node.daemons.root

    def ensure(self, desired: mps_files.Desired) -> None:
        self._node.daemons.ensure(desired)

    def last_pid(self, key: str) -> int | None:
        return self.first if self._node.daemons.status(key) else None

    def request(self, desired: mps_files.Desired) -> None:
        self._node.daemons.request(desired)

    def desired_keys(self) -> tuple[str, ...]:
        return self._node.daemons.desired_keys()

    def read_desired(self, key: str) -> mps_files.Desired | None:
        return self._node.daemons.read_desired(key)

    def remove(self, key: str) -> None:
        self._node.daemons.remove(key)

    def status(self, key: str) -> mps_files.Status | None:
        status = self._node.daemons.status(key)
        updated = {
            "state": self.state,
            "problem": self.problem,
            "pid": self.pid,
            "waiting": self.waiting,
            "occupied": self.occupied,
        }
        return status.model_copy(update=updated) if status else None


@dataclasses.dataclass
class World:
    node: gpunode.GpuNode
    said: Said
    told: plugin_shell.Events
    watch: mps_watch.MpsWatch
    registry: prometheus_client.CollectorRegistry
    time: fake_clock.FakeClock

    @property
    def failing(self) -> float | None:
        return self.registry.get_sample_value("dra_gpu_plugin_mps_daemons_failing")

    def look(self) -> list[tuple[str, str]]:
        """Return who is told what."""
        previous = len(self.told.told), len(self.told.good_news)
        self.watch.check()
        fresh = (*self.told.told[previous[0] :], *self.told.good_news[previous[1] :])
        return [(event[1], event[2]) for event in fresh]


@pytest.fixture
def world(tmp_path: Path) -> World:
    node = gpunode.GpuNode(tmp_path)
    events = plugin_shell.Events()
    time = fake_clock.FakeClock()
    statement = Said(node)
    registry = prometheus_client.CollectorRegistry()
    records = node.process().executor.records.list_records
    watch = mps_watch.MpsWatch(
        records,
        statement,
        plugin_events.EventReporter(events),
        metrics.Metrics(registry),
        mps_holders.MpsHolders(
            plugin_events.EventReporter(events),
            lambda _: (),
            claim_pods.ClaimPods(node.reader),
            time,
        ),
        time,
    )
    return World(node, statement, events, watch, registry, time)


def test_a_daemon_that_dies_is_told_to_each_of_its_claims_once(world: World) -> None:
    for number in (1, 2):
        prepare(world.node, a_share(number))
    assert world.look() == []
    world.said.state, world.said.problem = mps_files.State.FAILED, "it ended; control.log: killed"
    assert world.look() == [("claim-1", "MpsFailed"), ("claim-2", "MpsFailed")]
    assert "control.log: killed" in world.told.told[-1][3]
    assert world.look() == []


def test_the_recovery_of_a_daemon_is_reported(world: World) -> None:
    prepare(world.node, a_share(1))
    world.said.state, world.said.problem = mps_files.State.FAILED, "it ended"
    world.look()
    world.said.state, world.said.problem = mps_files.State.READY, ""
    assert world.failing == 1
    assert world.look() == [("claim-1", "MpsRecovered")]
    assert world.look() == []
    assert world.failing == 0


def test_claims_of_other_kinds_hear_nothing(world: World) -> None:
    prepare(world.node, a_share(1, "ts"))
    world.said.state, world.said.problem = mps_files.State.FAILED, "it ended"
    assert world.look() == []


def test_a_daemon_whose_claims_have_gone_is_forgotten(world: World) -> None:
    claim = a_share(1)
    prepare(world.node, claim)
    world.said.state, world.said.problem = mps_files.State.FAILED, "it ended"
    world.look()
    release(world.node, claim)
    assert world.look() == []
    prepare(world.node, claim)
    assert world.look() == [("claim-1", "MpsFailed")]


def test_a_daemon_that_was_replaced_between_two_looks_is_told_as_well(world: World) -> None:
    prepare(world.node, a_share(1))
    world.look()
    world.said.pid = 101
    assert world.look() == [("claim-1", "MpsFailed")]
    assert "it ended (pid 100)" in world.told.told[-1][3]
    assert world.look() == [("claim-1", "MpsRecovered")]
    assert world.look() == []


def test_a_daemon_that_was_replaced_before_the_first_look_is_told_too(world: World) -> None:
    world.said.first = 100
    prepare(world.node, a_share(1))
    world.said.pid = 101
    assert world.look() == [("claim-1", "MpsFailed")]
    assert "it ended (pid 100)" in world.told.told[-1][3]
    assert world.look() == [("claim-1", "MpsRecovered")]
    assert world.look() == []


def test_a_claim_with_several_gpus_under_its_daemon_is_told_once(world: World) -> None:
    sharing = {"apiVersion": VERSION, "kind": "GpuConfig", "sharing": {"strategy": "MPS"}}
    names = ("gpu-0000-53-00-0", "gpu-0000-64-00-0")
    results = (
        allocated_claims.a_result(name, request=f"r{index}") for index, name in enumerate(names)
    )
    prepare(world.node, allocated_claims.an_allocated_claim(*results, configs=[sharing]))
    world.said.state, world.said.problem = mps_files.State.FAILED, "it ended"
    assert world.look() == [("one", "MpsFailed")]


def test_a_client_blocked_by_another_user_is_reported_once_on_each_claim(
    world: World,
) -> None:
    for number in (1, 2):
        prepare(world.node, a_share(number))
    world.said.waiting = "client 7 of user 0 waits until the server of user 1000 has no clients"
    assert world.look() == [("claim-1", "MpsClientWaits"), ("claim-2", "MpsClientWaits")]
    assert world.told.told[-1][3].endswith(world.said.waiting)
    assert world.look() == []
    assert not world.failing
    world.said.waiting = ""
    assert world.look() == []
    world.said.waiting = "client 9 of user 0 waits until the server of user 1000 has no clients"
    assert len(world.look()) == 2


def test_a_daemon_that_stays_held_by_a_control_program_is_told_to_its_claims(world: World) -> None:
    for number in (1, 2):
        prepare(world.node, a_share(number))
    world.said.occupied = True
    assert world.look() == []
    world.time.advance(mps_holders.STAYS_S)
    assert world.look() == [("claim-1", "MpsControlHeld"), ("claim-2", "MpsControlHeld")]
    assert not world.failing
    world.said.occupied = False
    assert world.look() == [("claim-1", "MpsControlFreed"), ("claim-2", "MpsControlFreed")]

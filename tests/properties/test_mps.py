"""Deciding about an MPS daemon, in a world where anything happens in between."""

import dataclasses
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from driver.devices import mps_files
from driver.mps.daemon import control, reconcile_policy

GIB = 1 << 30
STEPS = 40
"""Of a second each: enough for every wait in a row."""


def wanted(devices: int, mib: int, percentage: int, shm_gib: int) -> reconcile_policy.DesiredDaemon:
    uuids = tuple(f"GPU-{number}" for number in range(devices))
    desired = mps_files.Desired(
        key="k",
        devices=uuids,
        pinned_memory=(mib * mps_files.MIB,) * devices,
        active_thread_percentage=percentage,
        shm_bytes=shm_gib * GIB or None,
    )
    return reconcile_policy.DesiredDaemon(desired, mps_files.digest(desired.render()))


@dataclass
class Daemon:
    """Daemon like the real one: defaults apply to later servers, sizes are shown in whole GiB."""

    shape: reconcile_policy.DaemonShape
    shm_bytes: int | None
    defaults: control.Limits
    sizes: tuple[int, ...] = ()
    server: control.Limits | None = None
    clients: list[int] = field(default_factory=list)
    settled: reconcile_policy.AppliedLimits = field(default_factory=reconcile_policy.AppliedLimits)
    settled_at: int = 0
    served: bool = False
    hangs_since: int | None = None
    answer: control.DaemonStatus | None = None
    quit_at: int | None = None
    used: bool = False


class World:
    """One key's worth of a node. Checks each act as it is carried out."""

    def __init__(self) -> None:
        self.now = 0
        self.goal: reconcile_policy.Goal = reconcile_policy.NoDaemon()
        self.daemon: Daemon | None = None
        self.left: list[int] = []
        self.retry_at = 0
        self.pids = 0
        self.last: reconcile_policy.Decision | None = None

    def happen(self, event: object) -> None:
        match event:
            case (
                reconcile_policy.DesiredDaemon()
                | reconcile_policy.NoDaemon()
                | reconcile_policy.UnreadableFile()
            ):
                self.goal = event
            case "dies":
                self.end()
            case "hangs" if self.daemon is not None and self.daemon.hangs_since is None:
                self.daemon.hangs_since = self.now
            case "client" if self.daemon is not None and self.daemon.served:
                self.pids += 1
                self.daemon.clients.append(self.pids)
                self.daemon.server = self.daemon.server or self.daemon.defaults
                self.daemon.used = True
            case "client ends":
                self.left = self.left[1:]
                if self.daemon is not None:
                    self.daemon.clients = self.daemon.clients[1:]
            case "meddler" if self.daemon is not None:
                self.daemon.defaults = control.Limits("1.0", self.daemon.defaults.memory)
            case _:
                pass

    def end(self) -> None:
        if self.daemon is not None:
            self.left += self.daemon.clients
            self.retry_at = self.now + 2
            self.daemon = None

    def step(self) -> None:
        self.now += 1
        daemon = self.daemon
        if daemon is not None and daemon.quit_at is not None and daemon.hangs_since is None:
            late = self.now - daemon.quit_at >= reconcile_policy.GRACE_S
            if late or not daemon.clients:
                self.end()
        decided = reconcile_policy.decide(self.goal, self.see())
        self.last = decided
        if self.daemon is not None and decided.serves:
            self.daemon.served = True
        self.act(decided.act)

    def see(self) -> reconcile_policy.Observed:
        daemon = self.daemon
        if daemon is None:
            wait_s = float(max(0, self.retry_at - self.now))
            return reconcile_policy.Absent(tuple(self.left), "it died", wait_s)
        if daemon.hangs_since is None:
            servers: tuple[control.Server, ...] = ()
            if daemon.server is not None:
                clients = tuple(daemon.clients)
                servers = (control.Server(7, "ACTIVE", daemon.server, clients),)
            daemon.answer = control.DaemonStatus(daemon.defaults, servers)
        silent_s = 0.0 if daemon.hangs_since is None else float(self.now - daemon.hangs_since)
        return reconcile_policy.Running(
            daemon.shape,
            daemon.answer,
            silent_s,
            tuple(daemon.clients),
            dataclasses.replace(daemon.settled, since_s=float(self.now - daemon.settled_at)),
            served=daemon.served,
            shm_bytes=daemon.shm_bytes,
            quit_s=None if daemon.quit_at is None else float(self.now - daemon.quit_at),
            used_servers=frozenset({7}) if daemon.used else frozenset(),
        )

    def act(self, act: reconcile_policy.Act) -> None:
        daemon = self.daemon
        match act:
            case "rest":
                pass
            case "clear":
                assert daemon is None
                assert isinstance(self.goal, reconcile_policy.NoDaemon)
                self.left = []
            case reconcile_policy.Start(desired):
                assert daemon is None
                assert not self.left
                blank = control.Limits("100.0", ("",) * len(desired.devices))
                shape = reconcile_policy.DaemonShape.from_desired(desired)
                self.daemon = Daemon(shape, desired.shm_bytes, blank)
            case reconcile_policy.Limit(goal):
                assert daemon is not None
                self.limit(daemon, goal)
            case reconcile_policy.Renew(servers):
                assert daemon is not None
                assert servers == (7,)
                assert not daemon.clients
                daemon.server = None
                daemon.used = False
            case reconcile_policy.Quit():
                assert daemon is not None
                assert isinstance(self.goal, reconcile_policy.NoDaemon) or not daemon.clients
                daemon.quit_at = self.now
            case reconcile_policy.Kill():
                assert daemon is not None
                reported = daemon.quit_at is not None
                assert reported or not daemon.clients
                self.end()

    def limit(self, daemon: Daemon, goal: reconcile_policy.DesiredDaemon) -> None:
        if daemon.hangs_since is not None:
            return
        desired = goal.desired
        daemon.sizes = desired.pinned_memory
        sizes = tuple(f"{size // GIB}G" for size in daemon.sizes)
        daemon.defaults = control.Limits(f"{desired.active_thread_percentage:.1f}", sizes)
        daemon.server = daemon.defaults if daemon.server else None
        daemon.shm_bytes = desired.shm_bytes
        tries = daemon.settled.tries + 1
        daemon.settled = reconcile_policy.AppliedLimits(goal.digest, frozenset({7}), tries=tries)
        daemon.settled_at = self.now


wishes = st.builds(
    wanted,
    st.integers(1, 2),
    st.sampled_from([4606, 4700, 8192]),  # of which the first two are both shown as 4G
    st.sampled_from([30, 60]),
    st.integers(0, 2),
)
goals = st.one_of(
    wishes,
    st.just(reconcile_policy.NoDaemon()),
    st.just(reconcile_policy.UnreadableFile("no JSON")),
)
happenings = st.sampled_from(
    ["dies", "hangs", "client", "client", "client ends", "meddler", "nothing"]
)
Happened = list[tuple[object, int]]
"""What happens, and the seconds until the next."""

events = st.lists(st.tuples(st.one_of(goals, happenings, happenings), st.integers(1, 4)))


def young() -> World:
    """A world with a daemon that serves."""
    world = World()
    world.happen(wanted(1, 4606, 30, 0))
    for _ in range(4):
        world.step()
    assert world.daemon is not None
    assert world.daemon.served
    return world


def lived(happened: Happened) -> World:
    world = young()
    for event, seconds in happened:
        world.happen(event)
        for _ in range(seconds):
            world.step()
    return world


def settle(world: World, goal: reconcile_policy.Goal) -> None:
    """Nobody changes his mind any more, and clients end."""
    world.happen(goal)
    for _ in range(STEPS):
        world.happen("client ends")
        world.step()


@given(events, wishes)
def test_whatever_happened_a_wanted_daemon_comes_to_serve(
    happened: Happened, goal: reconcile_policy.DesiredDaemon
) -> None:
    world = lived(happened)
    settle(world, goal)
    assert world.last == reconcile_policy.Decision("rest", mps_files.State.READY, serves=True)
    daemon = world.daemon
    assert daemon is not None
    assert daemon.shape == reconcile_policy.DaemonShape.from_desired(goal.desired)
    assert daemon.defaults.percentage == f"{goal.desired.active_thread_percentage:.1f}"
    assert (daemon.sizes, daemon.shm_bytes) == (goal.desired.pinned_memory, goal.desired.shm_bytes)


@given(events)
def test_whatever_happened_an_unwanted_daemon_goes(happened: Happened) -> None:
    world = lived(happened)
    settle(world, reconcile_policy.NoDaemon())
    assert world.daemon is None
    assert world.last == reconcile_policy.Decision("clear", mps_files.State.STOPPING)


@given(events)
def test_the_reported_mps_status_holds_at_every_step(happened: Happened) -> None:
    """`serves` never stands while the daemon answers otherwise; acts are checked by the world."""
    world = young()
    for event, _ in happened:
        world.happen(event)
        seen = world.see()
        if reconcile_policy.decide(world.goal, seen).serves:
            assert isinstance(world.goal, reconcile_policy.DesiredDaemon)
            assert isinstance(seen, reconcile_policy.Running)
            assert seen.status is not None
            assert not list(control.limit_differences(world.goal.desired, seen.status.defaults))
            assert seen.limits.digest == world.goal.digest
        world.step()

"""Decides the next act on a daemon, from the goal and the observed state. Pure.

One act at a time; after each the daemon is observed again. So after any interruption or change the
next decision starts from the actual state.
"""

from dataclasses import dataclass, field, replace
from typing import Literal, assert_never

from driver.devices import mps_files
from driver.mps.daemon import control

State = mps_files.State

ANSWER_S = 10.0
"""A daemon that has not replied for this time hangs."""
AGAIN_S = 2.0
"""Interval of tries to set limits that do not take effect."""
TRIES = 3
"""Sets in vain after which a daemon that never served is called failed."""
GRACE_S = 5.0
"""Time for clients to end after the daemon was told to quit."""
KILL_S = GRACE_S + 3.0
"""A daemon that still runs this long after it was told to quit is killed."""

_ENDED = "the last daemon was told to go"


@dataclass(frozen=True, slots=True)
class DesiredDaemon:
    """A desired file, and the digest of its bytes."""

    desired: mps_files.Desired
    digest: str


@dataclass(frozen=True, slots=True)
class NoDaemon:
    """There is no desired file."""


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """The desired file cannot be read: a running daemon continues as it is."""

    problem: str


Goal = DesiredDaemon | NoDaemon | UnreadableFile


@dataclass(frozen=True, slots=True)
class DaemonShape:
    """Start parameters of a daemon; a change of them requires a new daemon."""

    devices: tuple[str, ...]
    multi_user: bool
    own_shm: bool

    @classmethod
    def from_desired(cls, desired: mps_files.Desired) -> "DaemonShape":
        """Return the start parameters of a desired daemon."""
        return cls(desired.devices, desired.multi_user, desired.shm_bytes is not None)


@dataclass(frozen=True, slots=True)
class AppliedLimits:
    """Limits of the file `digest` set for these `servers`, and the vain tries so far."""

    digest: str = ""
    servers: frozenset[int] = frozenset()
    since_s: float = 0.0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Running:
    """A daemon that runs. Times are seconds until now.

    `status` is its last reply, None before the first; `silent_s` is since then, or since its start.
    `clients` are pids of its clients, also while it is silent. `served` is whether it ever was as
    desired, `shm_bytes` the size of its own /dev/shm. `occupied` names other connected control
    programs: it takes no command meanwhile. `used_servers` ever had a client, `ending_servers` were
    told to end since.
    """

    shape: DaemonShape
    status: control.DaemonStatus | None = None
    silent_s: float = 0.0
    clients: tuple[int, ...] = ()
    limits: AppliedLimits = field(default_factory=AppliedLimits)
    served: bool = False
    shm_bytes: int | None = None
    quit_s: float | None = None
    occupied: str = ""
    used_servers: frozenset[int] = frozenset()
    ending_servers: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Absent:
    """No daemon runs.

    `lingering` are former clients: their contexts are dead, and while they live a new daemon would
    take them for its own clients. `failure` is how the last daemon, or the attempt to start one,
    ended; `wait_s` is the time until the next try.
    """

    lingering: tuple[int, ...] = ()
    failure: str = ""
    wait_s: float = 0.0


Observed = Running | Absent


@dataclass(frozen=True, slots=True)
class Start:
    """Start a daemon."""

    desired: mps_files.Desired


@dataclass(frozen=True, slots=True)
class Limit:
    """Set the limits, for the daemon and each of its servers."""

    goal: DesiredDaemon


@dataclass(frozen=True, slots=True)
class Renew:
    """End idle servers; the daemon starts another for the next client.

    A client killed with work in flight may leave its server such that the next client hangs in
    cuInit, and nothing tells how a client ended.
    """

    servers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quit:
    """Tell the daemon to quit, and give its clients GRACE_S."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the daemon; `reason` is set if that is a failure."""

    reason: str = ""


Step = Start | Limit | Renew | Quit | Kill
Act = Literal["rest", "clear"] | Step
"""`clear`: nothing is desired and nothing runs, so remove what remains."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An act, and the status meanwhile.

    `serves` is whether the daemon replies with what is desired; None: unchanged.
    """

    act: Act
    state: State
    problem: str = ""
    serves: bool | None = None


def decide(goal: Goal, observed: Observed) -> Decision:
    """Return the next act."""
    match observed:
        case Absent():
            return _decide_absent(goal, observed)
        case Running(quit_s=float() as since_s):
            act: Act = Kill() if since_s >= KILL_S else "rest"
            return Decision(act, State.STOPPING)
        case Running():
            return _decide_running(goal, observed)
        case _:
            assert_never(observed)


def _decide_absent(goal: Goal, absent: Absent) -> Decision:
    match goal:
        case NoDaemon():
            return Decision("clear", State.STOPPING)
        case UnreadableFile(problem):
            return Decision("rest", State.FAILED, problem)
        case DesiredDaemon() if absent.lingering:
            clients = ", ".join(str(pid) for pid in absent.lingering)
            problem = (
                f"{absent.failure or _ENDED}; it is started again when its clients end: {clients}"
            )
            return Decision("rest", State.FAILED, problem)
        case DesiredDaemon() if absent.wait_s > 0:
            return Decision("rest", State.FAILED, absent.failure)
        case DesiredDaemon(desired):
            return Decision(Start(desired), State.STARTING, absent.failure)
        case _:
            assert_never(goal)


def _decide_running(goal: Goal, running: Running) -> Decision:
    match goal:
        case NoDaemon():
            return Decision(Quit(), State.STOPPING)
        case UnreadableFile(problem):
            state = State.READY if running.served else State.STARTING
            return _if_silent(running) or Decision("rest", state, problem)
        case DesiredDaemon(desired):
            if running.shape != DaemonShape.from_desired(desired):
                return _await_replacement(running)
            waiting = _if_silent(running) or _if_occupied(running)
            if waiting is not None or running.status is None:
                return waiting or Decision("rest", State.STARTING)
            return _decide_answering(goal, running, running.status)
        case _:
            assert_never(goal)


def _await_replacement(running: Running) -> Decision:
    if not running.clients:
        return Decision(Quit(), State.STOPPING)
    clients = ", ".join(str(pid) for pid in running.clients)
    problem = (
        "other devices, users or shared memory take a new daemon; it is started when the clients "
        f"of this one end: {clients}"
    )
    return Decision("rest", State.READY, problem)


def _if_silent(running: Running) -> Decision | None:
    """Return the decision about a daemon that hangs; None if it does not."""
    if running.silent_s < ANSWER_S:
        return None
    problem = f"the daemon does not answer for {ANSWER_S:.0f} s"
    if running.clients:
        return Decision("rest", State.FAILED, f"{problem}; it is ended when its clients have")
    return Decision(Kill(problem), State.FAILED, problem)


def _if_occupied(running: Running) -> Decision | None:
    """Wait for the end of another control program; None if there is none."""
    state = State.READY if running.served else State.STARTING
    return Decision("rest", state, running.occupied) if running.occupied else None


def _decide_answering(
    goal: DesiredDaemon, running: Running, status: control.DaemonStatus
) -> Decision:
    state = State.READY if running.served else State.STARTING
    staying = tuple(server for server in status.servers if server.pid not in running.ending_servers)
    current = replace(status, servers=staying)
    applied, pids = running.limits, {server.pid for server in current.servers}
    if applied.digest != goal.digest or not pids <= applied.servers:
        return Decision(Limit(goal), state, serves=False)
    differences = _differences(goal.desired, running, current)
    if differences:
        failed = not running.served and applied.tries >= TRIES
        act: Act = Limit(goal) if applied.since_s >= AGAIN_S else "rest"
        return Decision(
            act, State.FAILED if failed else state, "; ".join(differences), serves=False
        )
    late_servers = (
        server
        for server in status.servers
        if server.pid in running.ending_servers and server.clients
    )
    problem = "; ".join((*control.client_problems(current), *map(_late_clients, late_servers)))
    idle = tuple(
        server.pid
        for server in staying
        if server.pid in running.used_servers and not server.clients
    )
    return Decision(Renew(idle) if idle else "rest", State.READY, problem, serves=True)


def _late_clients(server: control.Server) -> str:
    clients = ", ".join(str(pid) for pid in server.clients)
    return (
        f"MPS server {server.pid} was told to end while it was idle, and clients came meanwhile: "
        f"new ones may wait until these end: {clients}"
    )


def _differences(
    desired: mps_files.Desired, running: Running, status: control.DaemonStatus
) -> list[str]:
    differences = list(control.limit_differences(desired, status.defaults))
    for server in status.servers:
        server_differences = control.limit_differences(desired, server.limits)
        differences += [f"{text} of server {server.pid}" for text in server_differences]
    if desired.shm_bytes != running.shm_bytes:
        differences.append(
            f"shared memory {running.shm_bytes} bytes instead of {desired.shm_bytes}"
        )
    return differences

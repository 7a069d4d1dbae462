"""What to do next about one daemon: what is wanted and what is seen in, an act out. Pure.

One act at a time; after each the daemon is looked at again. So whatever is interrupted, and
whatever changes meanwhile, the next decision starts from what is true.
"""

from dataclasses import dataclass, field, replace
from typing import Literal, assert_never

from driver.devices import mps_files
from driver.mps.daemon import control

State = mps_files.State

ANSWER_S = 10.0
"""A daemon that has not answered for so long hangs."""
AGAIN_S = 2.0
"""Between two tries to set limits that do not show."""
TRIES = 3
"""Sets in vain after which a daemon that never served is called failed."""
GRACE_S = 5.0
"""Clients' time to end after the daemon was told to quit."""
KILL_S = GRACE_S + 3.0
"""A daemon that is still there so long after it was told to quit is killed."""

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
    """There is one that cannot be read: what runs goes on as it is."""

    problem: str


Goal = DesiredDaemon | NoDaemon | UnreadableFile


@dataclass(frozen=True, slots=True)
class DaemonShape:
    """What a daemon is started with; another one takes another daemon."""

    devices: tuple[str, ...]
    multi_user: bool
    own_shm: bool

    @classmethod
    def from_desired(cls, wanted: mps_files.Desired) -> "DaemonShape":
        """That of a wanted daemon."""
        return cls(wanted.devices, wanted.multi_user, wanted.shm_bytes is not None)


@dataclass(frozen=True, slots=True)
class AppliedLimits:
    """What was set, and how often in vain: limits of the file `digest`, for these `servers`."""

    digest: str = ""
    servers: frozenset[int] = frozenset()
    since_s: float = 0.0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Running:
    """A daemon that runs. Times are seconds until now.

    `answer` is its last, None before the first; `silent_s` is since then, or since its start.
    `clients` are pids of those that work with it, also while it is silent.
    `served` is whether it ever had all that was wanted, `shm_bytes` the size of its own /dev/shm.
    `occupied` says in words who else is connected to it: it takes no command meanwhile.
    `used` are servers that ever had a client, `leaving` those that were told to end since.
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

    `left` are processes that were clients of the last one: their contexts are dead, and while they
    live a new daemon would take them for clients of its own. `failure` is how the last one, or
    the try to start one, ended; `wait_s` is how long until the next try.
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
    """Set the limits, for the daemon and every server it has."""

    goal: DesiredDaemon


@dataclass(frozen=True, slots=True)
class Renew:
    """End servers that nobody uses; the daemon starts another for the next client.

    A client that was killed with work in flight may leave its server such that the next one hangs
    in cuInit, and nothing tells how a client ended.
    """

    servers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quit:
    """Tell the daemon to go, and give its clients GRACE_S."""


@dataclass(frozen=True, slots=True)
class Kill:
    """End the daemon by force; `why`, where that is a failure."""

    reason: str = ""


Step = Start | Limit | Renew | Quit | Kill
Act = Literal["rest", "clear"] | Step
"""`clear`: nothing is wanted and nothing runs, so remove what is left of it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An act, and what the status says meanwhile.

    `serves` is whether the daemon answers with what is wanted; None: nothing changes about that.
    """

    act: Act
    state: State
    problem: str = ""
    serves: bool | None = None


def decide(goal: Goal, seen: Observed) -> Decision:
    """The next act."""
    match seen:
        case Absent():
            return _decide_absent(goal, seen)
        case Running(quit_s=float() as since_s):
            act: Act = Kill() if since_s >= KILL_S else "rest"
            return Decision(act, State.STOPPING)
        case Running():
            return _decide_running(goal, seen)
        case _:
            assert_never(seen)


def _decide_absent(goal: Goal, seen: Absent) -> Decision:
    match goal:
        case NoDaemon():
            return Decision("clear", State.STOPPING)
        case UnreadableFile(problem):
            return Decision("rest", State.FAILED, problem)
        case DesiredDaemon() if seen.lingering:
            who = ", ".join(str(pid) for pid in seen.lingering)
            problem = f"{seen.failure or _ENDED}; it is started again when its clients end: {who}"
            return Decision("rest", State.FAILED, problem)
        case DesiredDaemon() if seen.wait_s > 0:
            return Decision("rest", State.FAILED, seen.failure)
        case DesiredDaemon(desired):
            return Decision(Start(desired), State.STARTING, seen.failure)
        case _:
            assert_never(goal)


def _decide_running(goal: Goal, seen: Running) -> Decision:
    match goal:
        case NoDaemon():
            return Decision(Quit(), State.STOPPING)
        case UnreadableFile(problem):
            state = State.READY if seen.served else State.STARTING
            return _if_silent(seen) or Decision("rest", state, problem)
        case DesiredDaemon(desired):
            if seen.shape != DaemonShape.from_desired(desired):
                return _await_replacement(seen)
            silent = _if_silent(seen) or _if_occupied(seen)
            if silent is not None or seen.status is None:
                return silent or Decision("rest", State.STARTING)
            return _decide_answering(goal, seen, seen.status)
        case _:
            assert_never(goal)


def _await_replacement(seen: Running) -> Decision:
    if not seen.clients:
        return Decision(Quit(), State.STOPPING)
    who = ", ".join(str(pid) for pid in seen.clients)
    problem = (
        "other devices, users or shared memory take a new daemon; it is started when the clients "
        f"of this one end: {who}"
    )
    return Decision("rest", State.READY, problem)


def _if_silent(seen: Running) -> Decision | None:
    """What to do about a daemon that hangs; None when it does not."""
    if seen.silent_s < ANSWER_S:
        return None
    words = f"the daemon does not answer for {ANSWER_S:.0f} s"
    if seen.clients:
        return Decision("rest", State.FAILED, f"{words}; it is ended when its clients have")
    return Decision(Kill(words), State.FAILED, words)


def _if_occupied(seen: Running) -> Decision | None:
    """Wait for the end of another control program; None when there is none."""
    state = State.READY if seen.served else State.STARTING
    return Decision("rest", state, seen.occupied) if seen.occupied else None


def _decide_answering(goal: DesiredDaemon, seen: Running, reply: control.DaemonStatus) -> Decision:
    state = State.READY if seen.served else State.STARTING
    staying = tuple(server for server in reply.servers if server.pid not in seen.ending_servers)
    answer = replace(reply, servers=staying)
    done, pids = seen.limits, {server.pid for server in answer.servers}
    if done.digest != goal.digest or not pids <= done.servers:
        return Decision(Limit(goal), state, serves=False)
    wrong = _differences(goal.desired, seen, answer)
    if wrong:
        failed = not seen.served and done.tries >= TRIES
        act: Act = Limit(goal) if done.since_s >= AGAIN_S else "rest"
        return Decision(act, State.FAILED if failed else state, "; ".join(wrong), serves=False)
    late = (
        server for server in reply.servers if server.pid in seen.ending_servers and server.clients
    )
    problem = "; ".join((*control.client_problems(answer), *map(_late_clients, late)))
    idle = tuple(
        server.pid for server in staying if server.pid in seen.used_servers and not server.clients
    )
    return Decision(Renew(idle) if idle else "rest", State.READY, problem, serves=True)


def _late_clients(server: control.Server) -> str:
    who = ", ".join(str(pid) for pid in server.clients)
    return (
        f"MPS server {server.pid} was told to end while it was idle, and clients came meanwhile: "
        f"new ones wait until these end: {who}"
    )


def _differences(
    wanted: mps_files.Desired, seen: Running, answer: control.DaemonStatus
) -> list[str]:
    found = list(control.limit_differences(wanted, answer.defaults))
    for server in answer.servers:
        wrong = control.limit_differences(wanted, server.limits)
        found += [f"{words} of server {server.pid}" for words in wrong]
    if wanted.shm_bytes != seen.shm_bytes:
        found.append(f"shared memory {seen.shm_bytes} bytes instead of {wanted.shm_bytes}")
    return found

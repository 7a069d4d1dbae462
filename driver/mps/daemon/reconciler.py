"""Keeps one daemon as it is wanted: looks, decides, tells, acts, one step at a time."""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

import structlog

from driver import clock, errors
from driver.devices import mps_files
from driver.kube import backoff
from driver.mps import metrics, processes, status_files
from driver.mps.daemon import cgroups, control, directories, reconcile_policy, shm
from driver.mps.daemon import process as daemon_process

_log = structlog.get_logger(__name__)
RESTARTING = backoff.Pace(base_s=1.0, max_s=60.0)
"""Between the end of a daemon that should be there and the next start."""

SOUND_S = 60.0
"""A daemon that lived so long and served had no part in what failed before it."""
_SOON_S = 0.02
_LEFT_S = 0.5
_QUIT_S = 0.5
_SERVED = ""
"""Instead of a user's id, of a client that waits no more."""
_DIED_ALONE = "the daemon ended while no supervisor ran"


@dataclass(frozen=True, slots=True)
class Tools:
    """What every keeper works with."""

    program: daemon_process.Program
    metrics: metrics.Metrics
    clock: clock.Clock
    jitter: backoff.Jitter
    poll_s: float
    host_root: Path


@dataclass(slots=True)
class _Run:
    """A daemon that runs, as far as it is known. Times are the clock's."""

    handle: daemon_process.Handle
    shape: reconcile_policy.Shape
    began: float
    heard: float
    ours: bool
    asked: float = -math.inf
    answer: control.Answer | None = None
    clients: tuple[mps_files.Process, ...] = ()
    pending: dict[mps_files.Process, str] = field(default_factory=dict)
    settled: reconcile_policy.Settled = field(default_factory=reconcile_policy.Settled)
    settled_at: float = 0.0
    served: bool = False
    applied: str = ""
    used: frozenset[int] = frozenset()
    leaving: frozenset[int] = frozenset()
    quit_at: float | None = None
    killed: str = ""
    occupied: str = ""
    holders: tuple[mps_files.Holder, ...] = ()


@dataclass(slots=True)
class _Past:
    """What the daemons before left behind."""

    failure: str = ""
    failures: int = 0
    retry_at: float = -math.inf
    left: tuple[mps_files.Process, ...] = ()


class Keeper:
    """The daemon of one key. Used by one thread."""

    def __init__(
        self, key: str, place: daemon_process.Place, status: status_files.StatusFile, tools: Tools
    ) -> None:
        self._key = key
        self._place = place
        self._status = status
        self._tools = tools
        self._run: _Run | None = None
        self._past = _Past()
        self._digest = ""
        self._looked = False

    @property
    def descriptor(self) -> int | None:
        """Readable once the daemon has ended; None while there is none."""
        return self._run.handle.fileno() if self._run else None

    def _look_around(self) -> None:
        """Go on from what another supervisor left."""
        if not self._take_over() and (said := self._status.inherited()) is not None:
            words = directories.last_words(self._place)
            self._past.failure = f"{_DIED_ALONE}; {words}" if words else _DIED_ALONE
            self._past.left = self._survivors(said.processes)
        self._looked = True

    def _take_over(self) -> bool:
        """Whether a daemon runs there already; then it is ours from now on."""
        found = daemon_process.Handle.adopt(self._place)
        if found is None:
            return False
        self._begin(found, found.shape(self._place), ours=False)
        _log.info("daemon taken over", key=self._key, pid=found.pid)
        return True

    def step(self, goal: reconcile_policy.Goal) -> float | None:
        """Do what is due; seconds until more is, or None when nothing is left to keep.

        Raises NodeFault; the next step tries again.
        """
        if not self._looked:
            self._look_around()
        self._note_goal(goal)
        self._note_end()
        if self._is_due():
            self._ask()
        decided = reconcile_policy.decide(goal, self._seen())
        if self._run is not None and decided.serves is not None:
            self._note_service(self._run, serves=decided.serves)
        if decided.act == "clear":
            self._clear()
            return None
        self._tell(decided)
        if decided.act == "rest":
            return self._rest_s()
        self._act(decided.act)
        if isinstance(decided.act, reconcile_policy.Start):
            self._tell(decided)  # its pid, before it is asked for anything
        return _SOON_S if isinstance(decided.act, reconcile_policy.Kill) else 0.0

    def _now(self) -> float:
        return self._tools.clock.monotonic()

    def _note_goal(self, goal: reconcile_policy.Goal) -> None:
        digest = goal.digest if isinstance(goal, reconcile_policy.Wanted) else ""
        if digest != self._digest:
            self._past.retry_at = -math.inf  # what failed was something else
        self._digest = digest

    def _note_end(self) -> None:
        run, now = self._run, self._now()
        words = run.handle.ended() if run else None
        if run is None or words is None:
            self._past.left = processes.alive(self._past.left)
            return
        self._run = None
        run.handle.close()
        self._past.left = self._survivors(run.clients)
        self._tools.metrics.ends[_how(run)].inc()
        if run.quit_at is not None:
            self._past.failure = ""
            return
        said = directories.last_words(self._place)
        self._past.failure = f"{run.killed or words}; {said}" if said else run.killed or words
        if run.served and now - run.began >= SOUND_S:
            self._past.failures = 0
        self._past.failures += 1
        wait_s = RESTARTING.wait_s(self._past.failures, self._tools.jitter)
        self._past.retry_at = now + wait_s

    def _survivors(self, known: Iterable[mps_files.Process]) -> tuple[mps_files.Process, ...]:
        """Clients that live still: those known, and those that came after the last question."""
        told = (processes.identify(pid) for pid in self._clients_in_log())
        found = dict.fromkeys((*known, *(one for one in told if one is not None)))
        return processes.alive(found)

    def _clients_in_log(self) -> tuple[int, ...]:
        return control.clients_in_log(directories.control_log(self._place))

    def _note_service(self, run: _Run, *, serves: bool) -> None:
        run.applied = self._digest if serves else ""
        if not serves:
            return
        run.settled = dataclasses.replace(run.settled, tries=0)
        if not run.served and run.ours:
            self._tools.metrics.ready_seconds.observe(self._now() - run.began)
        run.served = True

    def _is_due(self) -> bool:
        run = self._run
        if run is None or run.quit_at is not None:
            return False
        return run.answer is None or self._now() - run.asked >= self._tools.poll_s

    def _ask(self) -> None:
        """Ask the daemon everything; no answer leaves the last one."""
        run = self._run
        if run is None:
            return
        run.asked = self._now()
        answer = self._answer(len(run.shape.devices))
        if answer is None:
            return
        found = (processes.identify(pid) for pid in answer.clients)
        run.clients = tuple(one for one in found if one is not None)
        run.answer = dataclasses.replace(answer, waiting=self._waiting(run, answer.servers))
        run.heard = self._now()
        there = {server.pid for server in answer.servers}
        run.used = run.used & there | {server.pid for server in answer.servers if server.clients}
        run.leaving &= there
        directories.bound_logs(self._place)

    def _answer(self, devices: int) -> control.Answer | None:
        reply = self._say(control.questions(devices))
        found = None if reply is None else control.read_daemon(reply, devices)
        if found is None:
            return None
        defaults, pids = found
        servers = []
        for pid in pids:
            reply = self._say(control.questions_of_server(pid, devices))
            server = None if reply is None else control.read_server(reply, pid, devices)
            servers += [] if server is None else [server]
        failed = "" if servers else control.server_failure(directories.control_log(self._place))
        return control.Answer(defaults, tuple(servers), failed)

    def _waiting(self, run: _Run, servers: Iterable[control.Server]) -> str:
        """Say who waits behind another user's server. The log tells of a client but once."""
        if run.shape.multi_user:
            return ""
        for pid, user in control.pending_in_log(directories.control_log(self._place)).items():
            if (process := processes.identify(pid)) is not None:
                run.pending.setdefault(process, user)
        run.pending.update(dict.fromkeys(run.clients, _SERVED))
        alive = processes.alive(run.pending)
        run.pending = {process: run.pending[process] for process in alive}
        still = {process.pid: user for process, user in run.pending.items() if user != _SERVED}
        busy = (processes.user(server.pid) for server in servers if server.clients)
        user = next(busy, _SERVED)
        return control.waiting(still, user) if user else ""

    def _say(self, commands: tuple[str, ...], within_s: float = daemon_process.SAY_S) -> str | None:
        try:
            reply = self._tools.program.say(self._place, commands, within_s)
        except daemon_process.Occupied as e:
            self._note_occupied(str(e), e.holders)
            return None
        except errors.NodeFault as e:
            _log.warning("daemon cannot be asked", key=self._key, problem=str(e))
            return None
        self._note_occupied("")
        return reply

    def _note_occupied(self, problem: str, holders: tuple[mps_files.Holder, ...] = ()) -> None:
        """A daemon that another control program keeps busy does not hang."""
        run = self._run
        if run is None:
            return
        if problem:
            run.heard = self._now()
        if problem != run.occupied:
            run.occupied, run.holders = problem, holders
            _log.warning("daemon occupied", key=self._key, problem=problem)

    def _seen(self) -> reconcile_policy.Seen:
        run, past, now = self._run, self._past, self._now()
        if run is None:
            left = tuple(one.pid for one in past.left)
            return reconcile_policy.Missing(left, past.failure, max(0.0, past.retry_at - now))
        return reconcile_policy.Living(
            shape=run.shape,
            answer=run.answer,
            silent_s=now - run.heard,
            clients=_clients(run),
            settled=dataclasses.replace(run.settled, since_s=now - run.settled_at),
            served=run.served,
            shm_bytes=shm.size_of(self._place.shm) if run.shape.own_shm else None,
            occupied=run.occupied,
            used=run.used,
            leaving=run.leaving,
            quit_s=None if run.quit_at is None else now - run.quit_at,
        )

    def _tell(self, decided: reconcile_policy.Decision) -> None:
        run = self._run
        answer = run.answer if run else None
        known = run.clients if run else self._past.left
        count = len(answer.clients) if answer else len(known)
        self._tools.metrics.show(self._key, (decided.state, count))
        more = {
            "pid": run.handle.pid if run else None,
            "shm_dir": str(self._place.shm) if run and run.shape.own_shm else None,
            "applied": run.applied if run else "",
            "clients": count,
            "processes": known,
            "waiting": answer.waiting if answer else "",
            "occupied": bool(run and run.occupied),
            "holders": run.holders if run else (),
        }
        self._status.tell(decided.state, decided.problem, more)

    def _rest_s(self) -> float:
        run, now = self._run, self._now()
        if run is None:
            wait_s = max(_SOON_S, self._past.retry_at - now)
            return min(wait_s, _LEFT_S) if self._past.left else wait_s
        if run.quit_at is not None:
            return _QUIT_S  # its end wakes us
        if run.answer is None:
            return _SOON_S
        return max(_SOON_S, run.asked + self._tools.poll_s - now)

    def _act(self, act: reconcile_policy.Step) -> None:
        match act:
            case reconcile_policy.Start(wanted):
                self._start(wanted)
            case reconcile_policy.Limit(wanted):
                self._limit(wanted)
            case reconcile_policy.Renew(servers):
                self._renew(servers)
            case reconcile_policy.Quit():
                self._quit()
            case reconcile_policy.Kill(why):
                self._kill(why)
            case _:
                assert_never(act)

    def _start(self, wanted: mps_files.Desired) -> None:
        """Start one, or fail: then the words stand in the status until the next try."""
        shape, place = reconcile_policy.Shape.of(wanted), self._place
        try:
            if self._take_over():
                return
            self._tools.program.end_servers(place)
            directories.make(place)
            if wanted.shm_bytes is None:
                shm.withdraw(place.shm)
            else:
                shm.provide(place.shm, wanted.shm_bytes)
            handle = self._tools.program.start(shape, place)
        except (errors.NodeFault, errors.BadInput) as e:
            self._past.failures += 1
            wait_s = RESTARTING.wait_s(self._past.failures, self._tools.jitter)
            self._past.retry_at = self._now() + wait_s
            self._past.failure = str(e)
            return
        self._tools.metrics.starts.inc()
        self._begin(handle, shape, ours=True)

    def _begin(
        self, handle: daemon_process.Handle, shape: reconcile_policy.Shape, *, ours: bool
    ) -> None:
        self._leave_pod(handle.pid)
        now = self._now()
        self._run = _Run(handle, shape, began=now, heard=now, ours=ours)

    def _leave_pod(self, pid: int) -> None:
        """Without a cgroup of its own the daemon ends with our container, and serves as well."""
        try:
            servers = processes.with_pipe(daemon_process.SERVER, self._place.pipe)
            cgroups.leave_pod((pid, *servers), self._tools.host_root)
        except (OSError, errors.NodeFault) as e:
            _log.warning("daemon stays in our cgroup", key=self._key, problem=str(e))

    def _limit(self, wanted: reconcile_policy.Wanted) -> None:
        """First the defaults, so that no server is missed: one that starts later has them."""
        run, desired = self._run, wanted.desired
        if run is None:
            return
        if desired.shm_bytes not in {None, shm.size_of(self._place.shm)}:
            shm.provide(self._place.shm, desired.shm_bytes or 0)
        said = self._say(control.limits(desired)) or ""
        self._ask()
        servers = run.answer.servers if run.answer else ()
        for server in servers:
            said += self._say(control.limits_of_server(desired, server.pid)) or ""
        if refused := control.refusals(said):
            _log.warning("daemon refused limits", key=self._key, said=refused)
        again = run.settled.digest == wanted.digest
        pids = frozenset(server.pid for server in servers)
        tries = run.settled.tries + 1 if again else 1
        run.settled = reconcile_policy.Settled(wanted.digest, pids, tries=tries)
        run.settled_at = self._now()
        self._ask()

    def _renew(self, servers: tuple[int, ...]) -> None:
        if self._run is not None:
            self._run.leaving |= frozenset(servers)
            self._say(tuple(f"shutdown_server {pid}" for pid in servers))
            self._ask()

    def _quit(self) -> None:
        run = self._run
        if run is not None:
            run.quit_at = self._now()
            if terminated := control.terminate(run.answer.servers if run.answer else ()):
                self._say(terminated, _QUIT_S)
            self._say((f"quit -t {reconcile_policy.GRACE_S:.0f}",), _QUIT_S)

    def _kill(self, why: str) -> None:
        if self._run is not None:
            self._run.killed = why
            self._run.handle.kill()

    def _clear(self) -> None:
        self._tools.program.end_servers(self._place)
        shm.withdraw(self._place.shm)
        directories.remove(self._place)
        self._status.remove()
        self._tools.metrics.show(self._key, None)


def _clients(run: _Run) -> tuple[int, ...]:
    """As the daemon told last; while it is silent, those of them that live still."""
    if run.answer is None or run.heard >= run.asked:
        return run.answer.clients if run.answer else ()
    return tuple(one.pid for one in processes.alive(run.clients))


def _how(run: _Run) -> str:
    if run.quit_at is not None:
        return "asked"
    if run.killed:
        return "hung"
    return "died" if run.served else "refused"

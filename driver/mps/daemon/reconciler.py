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
class Deps:
    """What every keeper works with."""

    program: daemon_process.ControlProgram
    metrics: metrics.Metrics
    clock: clock.Clock
    jitter: backoff.Jitter
    poll_s: float
    host_root: Path


@dataclass(slots=True)
class _Run:
    """A daemon that runs, as far as it is known. Times are the clock's."""

    handle: daemon_process.DaemonHandle
    shape: reconcile_policy.DaemonShape
    started_at: float
    replied_at: float
    ours: bool
    queried_at: float = -math.inf
    status: control.DaemonStatus | None = None
    clients: tuple[mps_files.Process, ...] = ()
    pending: dict[mps_files.Process, str] = field(default_factory=dict)
    limits: reconcile_policy.AppliedLimits = field(default_factory=reconcile_policy.AppliedLimits)
    limited_at: float = 0.0
    served: bool = False
    applied: str = ""
    used: frozenset[int] = frozenset()
    leaving: frozenset[int] = frozenset()
    quit_at: float | None = None
    kill_reason: str = ""
    occupied: str = ""
    holders: tuple[mps_files.Holder, ...] = ()


@dataclass(slots=True)
class _Past:
    """What the daemons before left behind."""

    failure: str = ""
    failures: int = 0
    retry_at: float = -math.inf
    lingering: tuple[mps_files.Process, ...] = ()


class DaemonReconciler:
    """The daemon of one key. Used by one thread."""

    def __init__(
        self,
        key: str,
        place: daemon_process.DaemonPaths,
        status: status_files.StatusFile,
        tools: Deps,
    ) -> None:
        self._key = key
        self._paths = place
        self._status = status
        self._deps = tools
        self._run: _Run | None = None
        self._past = _Past()
        self._digest = ""
        self._inherited = False

    @property
    def descriptor(self) -> int | None:
        """Readable once the daemon has ended; None while there is none."""
        return self._run.handle.fileno() if self._run else None

    def _inherit(self) -> None:
        """Go on from what another supervisor left."""
        if not self._adopt() and (said := self._status.read_previous()) is not None:
            words = directories.log_tails(self._paths)
            self._past.failure = f"{_DIED_ALONE}; {words}" if words else _DIED_ALONE
            self._past.lingering = self._survivors(said.processes)
        self._inherited = True

    def _adopt(self) -> bool:
        """Whether a daemon runs there already; then it is ours from now on."""
        found = daemon_process.DaemonHandle.find_running(self._paths)
        if found is None:
            return False
        self._set_run(found, found.read_shape(self._paths), ours=False)
        _log.info("daemon taken over", key=self._key, pid=found.pid)
        return True

    def reconcile(self, goal: reconcile_policy.Goal) -> float | None:
        """Do what is due; seconds until more is, or None when nothing is left to keep.

        Raises NodeFault; the next step tries again.
        """
        if not self._inherited:
            self._inherit()
        self._note_goal(goal)
        self._note_end()
        if self._is_due():
            self._query()
        decided = reconcile_policy.decide(goal, self._observe())
        if self._run is not None and decided.serves is not None:
            self._note_service(self._run, serves=decided.serves)
        if decided.act == "clear":
            self._clear()
            return None
        self._write_status(decided)
        if decided.act == "rest":
            return self._idle_s()
        self._execute(decided.act)
        if isinstance(decided.act, reconcile_policy.Start):
            self._write_status(decided)  # its pid, before it is asked for anything
        return _SOON_S if isinstance(decided.act, reconcile_policy.Kill) else 0.0

    def _now(self) -> float:
        return self._deps.clock.monotonic()

    def _note_goal(self, goal: reconcile_policy.Goal) -> None:
        digest = goal.digest if isinstance(goal, reconcile_policy.DesiredDaemon) else ""
        if digest != self._digest:
            self._past.retry_at = -math.inf  # what failed was something else
        self._digest = digest

    def _note_end(self) -> None:
        run, now = self._run, self._now()
        words = run.handle.exit_message() if run else None
        if run is None or words is None:
            self._past.lingering = processes.filter_alive(self._past.lingering)
            return
        self._run = None
        run.handle.close()
        self._past.lingering = self._survivors(run.clients)
        self._deps.metrics.ends[_end_label(run)].inc()
        if run.quit_at is not None:
            self._past.failure = ""
            return
        said = directories.log_tails(self._paths)
        self._past.failure = (
            f"{run.kill_reason or words}; {said}" if said else run.kill_reason or words
        )
        if run.served and now - run.started_at >= SOUND_S:
            self._past.failures = 0
        self._past.failures += 1
        wait_s = RESTARTING.wait_s(self._past.failures, self._deps.jitter)
        self._past.retry_at = now + wait_s

    def _survivors(self, known: Iterable[mps_files.Process]) -> tuple[mps_files.Process, ...]:
        """Clients that live still: those known, and those that came after the last question."""
        told = (processes.identify(pid) for pid in self._logged_clients())
        found = dict.fromkeys((*known, *(one for one in told if one is not None)))
        return processes.filter_alive(found)

    def _logged_clients(self) -> tuple[int, ...]:
        return control.logged_clients(directories.control_log(self._paths))

    def _note_service(self, run: _Run, *, serves: bool) -> None:
        run.applied = self._digest if serves else ""
        if not serves:
            return
        run.limits = dataclasses.replace(run.limits, tries=0)
        if not run.served and run.ours:
            self._deps.metrics.ready_seconds.observe(self._now() - run.started_at)
        run.served = True

    def _is_due(self) -> bool:
        run = self._run
        if run is None or run.quit_at is not None:
            return False
        return run.status is None or self._now() - run.queried_at >= self._deps.poll_s

    def _query(self) -> None:
        """Ask the daemon everything; no answer leaves the last one."""
        run = self._run
        if run is None:
            return
        run.queried_at = self._now()
        answer = self._query_daemon(len(run.shape.devices))
        if answer is None:
            return
        found = (processes.identify(pid) for pid in answer.clients)
        run.clients = tuple(one for one in found if one is not None)
        run.status = dataclasses.replace(answer, waiting=self._waiting_message(run, answer.servers))
        run.replied_at = self._now()
        there = {server.pid for server in answer.servers}
        run.used = run.used & there | {server.pid for server in answer.servers if server.clients}
        run.leaving &= there
        directories.truncate_logs(self._paths)

    def _query_daemon(self, devices: int) -> control.DaemonStatus | None:
        reply = self._send(control.query_commands(devices))
        found = None if reply is None else control.parse_daemon(reply, devices)
        if found is None:
            return None
        defaults, pids = found
        servers = []
        for pid in pids:
            reply = self._send(control.server_query_commands(pid, devices))
            server = None if reply is None else control.parse_server(reply, pid, devices)
            servers += [] if server is None else [server]
        failed = "" if servers else control.server_failure(directories.control_log(self._paths))
        return control.DaemonStatus(defaults, tuple(servers), failed)

    def _waiting_message(self, run: _Run, servers: Iterable[control.Server]) -> str:
        """Say who waits behind another user's server. The log tells of a client but once."""
        if run.shape.multi_user:
            return ""
        for pid, user in control.logged_pending(directories.control_log(self._paths)).items():
            if (process := processes.identify(pid)) is not None:
                run.pending.setdefault(process, user)
        run.pending.update(dict.fromkeys(run.clients, _SERVED))
        alive = processes.filter_alive(run.pending)
        run.pending = {process: run.pending[process] for process in alive}
        still = {process.pid: user for process, user in run.pending.items() if user != _SERVED}
        busy = (processes.effective_user(server.pid) for server in servers if server.clients)
        user = next(busy, _SERVED)
        return control.waiting_message(still, user) if user else ""

    def _send(
        self, commands: tuple[str, ...], within_s: float = daemon_process.REPLY_S
    ) -> str | None:
        try:
            reply = self._deps.program.send(self._paths, commands, within_s)
        except daemon_process.ControlOccupied as e:
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
            run.replied_at = self._now()
        if problem != run.occupied:
            run.occupied, run.holders = problem, holders
            _log.warning("daemon occupied", key=self._key, problem=problem)

    def _observe(self) -> reconcile_policy.Observed:
        run, past, now = self._run, self._past, self._now()
        if run is None:
            left = tuple(one.pid for one in past.lingering)
            return reconcile_policy.Absent(left, past.failure, max(0.0, past.retry_at - now))
        return reconcile_policy.Running(
            shape=run.shape,
            status=run.status,
            silent_s=now - run.replied_at,
            clients=_client_pids(run),
            limits=dataclasses.replace(run.limits, since_s=now - run.limited_at),
            served=run.served,
            shm_bytes=shm.mounted_size(self._paths.shm) if run.shape.own_shm else None,
            occupied=run.occupied,
            used_servers=run.used,
            ending_servers=run.leaving,
            quit_s=None if run.quit_at is None else now - run.quit_at,
        )

    def _write_status(self, decided: reconcile_policy.Decision) -> None:
        run = self._run
        answer = run.status if run else None
        known = run.clients if run else self._past.lingering
        count = len(answer.clients) if answer else len(known)
        self._deps.metrics.set_daemon(self._key, (decided.state, count))
        more = {
            "pid": run.handle.pid if run else None,
            "shm_dir": str(self._paths.shm) if run and run.shape.own_shm else None,
            "applied": run.applied if run else "",
            "clients": count,
            "processes": known,
            "waiting": answer.waiting if answer else "",
            "occupied": bool(run and run.occupied),
            "holders": run.holders if run else (),
        }
        self._status.write(decided.state, decided.problem, more)

    def _idle_s(self) -> float:
        run, now = self._run, self._now()
        if run is None:
            wait_s = max(_SOON_S, self._past.retry_at - now)
            return min(wait_s, _LEFT_S) if self._past.lingering else wait_s
        if run.quit_at is not None:
            return _QUIT_S  # its end wakes us
        if run.status is None:
            return _SOON_S
        return max(_SOON_S, run.queried_at + self._deps.poll_s - now)

    def _execute(self, act: reconcile_policy.Step) -> None:
        match act:
            case reconcile_policy.Start(wanted):
                self._start(wanted)
            case reconcile_policy.Limit(wanted):
                self._set_limits(wanted)
            case reconcile_policy.Renew(servers):
                self._end_idle_servers(servers)
            case reconcile_policy.Quit():
                self._quit()
            case reconcile_policy.Kill(why):
                self._kill(why)
            case _:
                assert_never(act)

    def _start(self, wanted: mps_files.Desired) -> None:
        """Start one, or fail: then the words stand in the status until the next try."""
        shape, place = reconcile_policy.DaemonShape.from_desired(wanted), self._paths
        try:
            if self._adopt():
                return
            self._deps.program.kill_servers(place)
            directories.prepare(place)
            if wanted.shm_bytes is None:
                shm.unmount(place.shm)
            else:
                shm.mount(place.shm, wanted.shm_bytes)
            handle = self._deps.program.start(shape, place)
        except (errors.NodeFault, errors.BadInput) as e:
            self._past.failures += 1
            wait_s = RESTARTING.wait_s(self._past.failures, self._deps.jitter)
            self._past.retry_at = self._now() + wait_s
            self._past.failure = str(e)
            return
        self._deps.metrics.starts.inc()
        self._set_run(handle, shape, ours=True)

    def _set_run(
        self,
        handle: daemon_process.DaemonHandle,
        shape: reconcile_policy.DaemonShape,
        *,
        ours: bool,
    ) -> None:
        self._leave_pod(handle.pid)
        now = self._now()
        self._run = _Run(handle, shape, started_at=now, replied_at=now, ours=ours)

    def _leave_pod(self, pid: int) -> None:
        """Without a cgroup of its own the daemon ends with our container, and serves as well."""
        try:
            servers = processes.pids_with_pipe(daemon_process.SERVER, self._paths.pipe)
            cgroups.leave_pod((pid, *servers), self._deps.host_root)
        except (OSError, errors.NodeFault) as e:
            _log.warning("daemon stays in our cgroup", key=self._key, problem=str(e))

    def _set_limits(self, wanted: reconcile_policy.DesiredDaemon) -> None:
        """First the defaults, so that no server is missed: one that starts later has them."""
        run, desired = self._run, wanted.desired
        if run is None:
            return
        if desired.shm_bytes not in {None, shm.mounted_size(self._paths.shm)}:
            shm.mount(self._paths.shm, desired.shm_bytes or 0)
        said = self._send(control.limit_commands(desired)) or ""
        self._query()
        servers = run.status.servers if run.status else ()
        for server in servers:
            said += self._send(control.server_limit_commands(desired, server.pid)) or ""
        if refused := control.parse_refusals(said):
            _log.warning("daemon refused limits", key=self._key, said=refused)
        again = run.limits.digest == wanted.digest
        pids = frozenset(server.pid for server in servers)
        tries = run.limits.tries + 1 if again else 1
        run.limits = reconcile_policy.AppliedLimits(wanted.digest, pids, tries=tries)
        run.limited_at = self._now()
        self._query()

    def _end_idle_servers(self, servers: tuple[int, ...]) -> None:
        if self._run is not None:
            self._run.leaving |= frozenset(servers)
            self._send(tuple(f"shutdown_server {pid}" for pid in servers))
            self._query()

    def _quit(self) -> None:
        run = self._run
        if run is not None:
            run.quit_at = self._now()
            if terminated := control.terminate_commands(run.status.servers if run.status else ()):
                self._send(terminated, _QUIT_S)
            self._send((f"quit -t {reconcile_policy.GRACE_S:.0f}",), _QUIT_S)

    def _kill(self, why: str) -> None:
        if self._run is not None:
            self._run.kill_reason = why
            self._run.handle.kill()

    def _clear(self) -> None:
        self._deps.program.kill_servers(self._paths)
        shm.unmount(self._paths.shm)
        directories.remove(self._paths)
        self._status.remove()
        self._deps.metrics.set_daemon(self._key, None)


def _client_pids(run: _Run) -> tuple[int, ...]:
    """As the daemon told last; while it is silent, those of them that live still."""
    if run.status is None or run.replied_at >= run.queried_at:
        return run.status.clients if run.status else ()
    return tuple(one.pid for one in processes.filter_alive(run.clients))


def _end_label(run: _Run) -> str:
    if run.quit_at is not None:
        return "asked"
    if run.kill_reason:
        return "hung"
    return "died" if run.served else "refused"

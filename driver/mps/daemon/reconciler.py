"""Reconciles one daemon: observes, decides, writes the status, acts, one step at a time."""

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
"""Back-off between the unwanted end of a daemon and the next start."""

SOUND_S = 60.0
"""A daemon that served and lived this long resets the count of failures."""
_SOON_S = 0.02
_LEFT_S = 0.5
_QUIT_S = 0.5
_SERVED = ""
"""Instead of a user's id, of a client that waits no more."""
_DIED_ALONE = "the daemon ended while no supervisor ran"


@dataclass(frozen=True, slots=True)
class Deps:
    """Dependencies of every reconciler."""

    program: daemon_process.ControlProgram
    metrics: metrics.Metrics
    clock: clock.Clock
    jitter: backoff.Jitter
    poll_s: float
    host_root: Path


@dataclass(slots=True)
class _Run:
    """A running daemon, as far as known. Times are the clock's."""

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
class _History:
    """State left by earlier daemons."""

    failure: str = ""
    failures: int = 0
    retry_at: float = -math.inf
    lingering: tuple[mps_files.Process, ...] = ()


class DaemonReconciler:
    """The daemon of one key. Used by one thread."""

    def __init__(
        self,
        key: str,
        paths: daemon_process.DaemonPaths,
        status: status_files.StatusFile,
        deps: Deps,
    ) -> None:
        self._key = key
        self._paths = paths
        self._status = status
        self._deps = deps
        self._run: _Run | None = None
        self._history = _History()
        self._digest = ""
        self._inherited = False

    @property
    def descriptor(self) -> int | None:
        """Return a descriptor readable once the daemon has ended; None while there is none."""
        return self._run.handle.fileno() if self._run else None

    def _inherit(self) -> None:
        """Continue from another supervisor's state."""
        if not self._adopt() and (last_status := self._status.read_previous()) is not None:
            log_text = directories.log_tails(self._paths)
            self._history.failure = f"{_DIED_ALONE}; {log_text}" if log_text else _DIED_ALONE
            self._history.lingering = self._survivors(last_status.processes)
        self._inherited = True

    def _adopt(self) -> bool:
        """Adopt a running daemon; return whether there is one."""
        handle = daemon_process.DaemonHandle.find_running(self._paths)
        if handle is None:
            return False
        self._set_run(handle, handle.read_shape(self._paths), is_own=False)
        _log.info("daemon taken over", key=self._key, pid=handle.pid)
        return True

    def reconcile(self, goal: reconcile_policy.Goal) -> float | None:
        """Do what is due; return the seconds until more is, or None when nothing is left.

        Raises NodeFault; the next call retries.
        """
        if not self._inherited:
            self._inherit()
        self._note_goal(goal)
        self._note_end()
        if self._is_due():
            self._query()
        decision = reconcile_policy.decide(goal, self._observe())
        if self._run is not None and decision.serves is not None:
            self._note_service(self._run, serves=decision.serves)
        if decision.act == "clear":
            self._clear()
            return None
        self._write_status(decision)
        if decision.act == "rest":
            return self._idle_s()
        self._execute(decision.act)
        if isinstance(decision.act, reconcile_policy.Start):
            self._write_status(decision)  # its pid, before it is queried
        return _SOON_S if isinstance(decision.act, reconcile_policy.Kill) else 0.0

    def _now(self) -> float:
        return self._deps.clock.monotonic()

    def _note_goal(self, goal: reconcile_policy.Goal) -> None:
        digest = goal.digest if isinstance(goal, reconcile_policy.DesiredDaemon) else ""
        if digest != self._digest:
            self._history.retry_at = -math.inf  # the failure was another goal's
        self._digest = digest

    def _note_end(self) -> None:
        run, now = self._run, self._now()
        message = run.handle.exit_message() if run else None
        if run is None or message is None:
            self._history.lingering = processes.filter_alive(self._history.lingering)
            return
        self._run = None
        run.handle.close()
        self._history.lingering = self._survivors(run.clients)
        self._deps.metrics.ends[_end_label(run)].inc()
        if run.quit_at is not None:
            self._history.failure = ""
            return
        log_text = directories.log_tails(self._paths)
        self._history.failure = (
            f"{run.kill_reason or message}; {log_text}" if log_text else run.kill_reason or message
        )
        if run.served and now - run.started_at >= SOUND_S:
            self._history.failures = 0
        self._history.failures += 1
        wait_s = RESTARTING.wait_s(self._history.failures, self._deps.jitter)
        self._history.retry_at = now + wait_s

    def _survivors(self, clients: Iterable[mps_files.Process]) -> tuple[mps_files.Process, ...]:
        """Return clients still alive: those known, and those started after the last query."""
        logged = (processes.identify(pid) for pid in self._logged_clients())
        candidates = dict.fromkeys(
            (*clients, *(process for process in logged if process is not None))
        )
        return processes.filter_alive(candidates)

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
        """Query the daemon; without a reply the last status stays."""
        run = self._run
        if run is None:
            return
        run.queried_at = self._now()
        status = self._query_daemon(len(run.shape.devices))
        if status is None:
            return
        clients = (processes.identify(pid) for pid in status.clients)
        run.clients = tuple(process for process in clients if process is not None)
        run.status = dataclasses.replace(status, waiting=self._waiting_message(run, status.servers))
        run.replied_at = self._now()
        pids = {server.pid for server in status.servers}
        run.used = run.used & pids | {server.pid for server in status.servers if server.clients}
        run.leaving &= pids
        directories.truncate_logs(self._paths)

    def _query_daemon(self, devices: int) -> control.DaemonStatus | None:
        reply = self._send(control.query_commands(devices))
        parsed = None if reply is None else control.parse_daemon(reply, devices)
        if parsed is None:
            return None
        defaults, pids = parsed
        servers = []
        for pid in pids:
            reply = self._send(control.server_query_commands(pid, devices))
            server = None if reply is None else control.parse_server(reply, pid, devices)
            servers += [] if server is None else [server]
        failed = "" if servers else control.server_failure(directories.control_log(self._paths))
        return control.DaemonStatus(defaults, tuple(servers), failed)

    def _waiting_message(self, run: _Run, servers: Iterable[control.Server]) -> str:
        """Return who waits behind another user's server. The log names a client only once."""
        if run.shape.multi_user:
            return ""
        for pid, user in control.logged_pending(directories.control_log(self._paths)).items():
            if (process := processes.identify(pid)) is not None:
                run.pending.setdefault(process, user)
        run.pending.update(dict.fromkeys(run.clients, _SERVED))
        alive = processes.filter_alive(run.pending)
        run.pending = {process: run.pending[process] for process in alive}
        waiting = {process.pid: user for process, user in run.pending.items() if user != _SERVED}
        busy = (processes.effective_user(server.pid) for server in servers if server.clients)
        user = next(busy, _SERVED)
        return control.waiting_message(waiting, user) if user else ""

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
        """Record a daemon that another control program keeps busy: it does not hang."""
        run = self._run
        if run is None:
            return
        if problem:
            run.replied_at = self._now()
        if problem != run.occupied:
            run.occupied, run.holders = problem, holders
            _log.warning("daemon occupied", key=self._key, problem=problem)

    def _observe(self) -> reconcile_policy.Observed:
        run, previous, now = self._run, self._history, self._now()
        if run is None:
            pids = tuple(process.pid for process in previous.lingering)
            return reconcile_policy.Absent(
                pids, previous.failure, max(0.0, previous.retry_at - now)
            )
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

    def _write_status(self, decision: reconcile_policy.Decision) -> None:
        run = self._run
        status = run.status if run else None
        clients = run.clients if run else self._history.lingering
        count = len(status.clients) if status else len(clients)
        self._deps.metrics.set_daemon(self._key, (decision.state, count))
        more = {
            "pid": run.handle.pid if run else None,
            "shm_dir": str(self._paths.shm) if run and run.shape.own_shm else None,
            "applied": run.applied if run else "",
            "clients": count,
            "processes": clients,
            "waiting": status.waiting if status else "",
            "occupied": bool(run and run.occupied),
            "holders": run.holders if run else (),
        }
        self._status.write(decision.state, decision.problem, more)

    def _idle_s(self) -> float:
        run, now = self._run, self._now()
        if run is None:
            wait_s = max(_SOON_S, self._history.retry_at - now)
            return min(wait_s, _LEFT_S) if self._history.lingering else wait_s
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

    def _start(self, desired: mps_files.Desired) -> None:
        """Start a daemon; a failure is in the status until the next try."""
        shape, paths = reconcile_policy.DaemonShape.from_desired(desired), self._paths
        try:
            if self._adopt():
                return
            self._deps.program.kill_servers(paths)
            directories.prepare(paths)
            if desired.shm_bytes is None:
                shm.unmount(paths.shm)
            else:
                shm.mount(paths.shm, desired.shm_bytes)
            handle = self._deps.program.start(shape, paths)
        except (errors.NodeFault, errors.BadInput) as e:
            self._history.failures += 1
            wait_s = RESTARTING.wait_s(self._history.failures, self._deps.jitter)
            self._history.retry_at = self._now() + wait_s
            self._history.failure = str(e)
            return
        self._deps.metrics.starts.inc()
        self._set_run(handle, shape, is_own=True)

    def _set_run(
        self,
        handle: daemon_process.DaemonHandle,
        shape: reconcile_policy.DaemonShape,
        *,
        is_own: bool,
    ) -> None:
        self._leave_pod(handle.pid)
        now = self._now()
        self._run = _Run(handle, shape, started_at=now, replied_at=now, ours=is_own)

    def _leave_pod(self, pid: int) -> None:
        """Move it out of our cgroup; if that fails it ends with our container, but serves."""
        try:
            servers = processes.pids_with_pipe(daemon_process.SERVER, self._paths.pipe)
            cgroups.leave_pod((pid, *servers), self._deps.host_root)
        except (OSError, errors.NodeFault) as e:
            _log.warning("daemon stays in our cgroup", key=self._key, problem=str(e))

    def _set_limits(self, goal: reconcile_policy.DesiredDaemon) -> None:
        """Set the defaults first, so that no server is missed: a later one has them."""
        run, desired = self._run, goal.desired
        if run is None:
            return
        if desired.shm_bytes not in {None, shm.mounted_size(self._paths.shm)}:
            shm.mount(self._paths.shm, desired.shm_bytes or 0)
        replies = self._send(control.limit_commands(desired)) or ""
        self._query()
        servers = run.status.servers if run.status else ()
        for server in servers:
            replies += self._send(control.server_limit_commands(desired, server.pid)) or ""
        if refusals := control.parse_refusals(replies):
            _log.warning("daemon refused limits", key=self._key, said=refusals)
        is_retry = run.limits.digest == goal.digest
        pids = frozenset(server.pid for server in servers)
        tries = run.limits.tries + 1 if is_retry else 1
        run.limits = reconcile_policy.AppliedLimits(goal.digest, pids, tries=tries)
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

    def _kill(self, reason: str) -> None:
        if self._run is not None:
            self._run.kill_reason = reason
            self._run.handle.kill()

    def _clear(self) -> None:
        self._deps.program.kill_servers(self._paths)
        shm.unmount(self._paths.shm)
        directories.remove(self._paths)
        self._status.remove()
        self._deps.metrics.set_daemon(self._key, None)


def _client_pids(run: _Run) -> tuple[int, ...]:
    """Return the clients of the last reply; while it is silent, those still alive."""
    if run.status is None or run.replied_at >= run.queried_at:
        return run.status.clients if run.status else ()
    return tuple(process.pid for process in processes.filter_alive(run.clients))


def _end_label(run: _Run) -> str:
    if run.quit_at is not None:
        return "asked"
    if run.kill_reason:
        return "hung"
    return "died" if run.served else "refused"

"""Runs a worker for each desired or leftover daemon; one supervisor per state directory."""

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from driver import clock, errors
from driver.devices import mps_files
from driver.mps import desired_state, metrics, worker
from driver.mps.daemon import reconcile_policy, reconciler
from driver.runtime.files import atomic, flock

_log = structlog.get_logger(__name__)
_WAIT_S = 0.2
_JOIN_S = 8.0
_MODE = 0o644

MakeReconciler = Callable[[str], reconciler.DaemonReconciler]


class Supervisor:
    """`run` is a thread's target; `problem` and `idle_s` may be called from any thread."""

    def __init__(
        self,
        layout: mps_files.Layout,
        make_keeper: MakeReconciler,
        counters: metrics.Metrics,
        time: clock.Clock,
        look_s: float,
    ) -> None:
        self._layout = layout
        self._make_reconciler = make_keeper
        self._metrics = counters
        self._clock = time
        self._sync_s = look_s
        self._files = desired_state.DesiredFiles(layout.desired_dir)
        self._workers: dict[str, worker.Worker] = {}
        self._synced_at = time.monotonic()
        self._problem: str | None = "no other supervisor's end has been waited for yet"
        self._misnamed: tuple[str, ...] = ()
        self._leftover: frozenset[str] = frozenset()

    def problem(self) -> str | None:
        """Return why daemons may not be as desired; None if all are managed."""
        return self._problem

    def idle_s(self) -> float:
        """Return the seconds since the files were last read."""
        return self._clock.monotonic() - self._synced_at

    def run(self, stop: threading.Event) -> None:
        """Manage the daemons until `stop` is set; they stay. Raises NodeFault."""
        for folder in (self._layout.desired_dir, self._layout.status_dir, self._layout.run_dir):
            _make_folder(folder)
        lock = self._acquire_lock(stop)
        try:
            self._leftover = self._leftover_keys()
            while not stop.is_set():
                self._sync()
                self._clock.wait(stop, self._sync_s)
        finally:
            self._stop_workers()
            os.close(lock)

    def _acquire_lock(self, stop: threading.Event) -> int:
        """Return the lock once its holder is gone; unlocked if `stop` is set first."""
        path = self._layout.lock
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        except OSError as e:
            raise errors.NodeFault("lock", str(path), str(e)) from e
        while not flock.try_lock(handle):
            self._synced_at = self._clock.monotonic()
            self._problem = "another supervisor runs with this state directory"
            if self._clock.wait(stop, _WAIT_S):
                break
        return handle

    def _leftover_keys(self) -> frozenset[str]:
        """Return keys of another supervisor's daemons, which may not be desired any more."""
        keys = {path.name for path in self._layout.run_dir.iterdir() if path.is_dir()}
        keys |= {path.stem for path in self._layout.status_dir.glob(f"*{mps_files.SUFFIX}")}
        return frozenset(key for key in keys if mps_files.is_key(key))

    def _sync(self) -> None:
        self._synced_at = self._clock.monotonic()
        self._remove_finished()
        try:
            goals = self._files.read()
        except errors.RationError as e:
            self._note_problem(str(e))  # and every daemon stays as it is
            return
        self._note_problem(None)
        self._note_files(goals)
        keys, self._leftover = goals.keys() | self._workers.keys() | self._leftover, frozenset()
        for key in keys:
            goal = goals.get(key, reconcile_policy.NoDaemon())
            current = self._workers.get(key)
            if current is None:
                self._start_worker(key, goal)
            else:
                current.set_goal(goal)  # if that was too late, the next sync starts another

    def _start_worker(self, key: str, goal: reconcile_policy.Goal) -> None:
        new_worker = worker.Worker(key, self._make_reconciler(key), goal)
        self._workers[key] = new_worker
        new_worker.start()

    def _remove_finished(self) -> None:
        for key, finished in list(self._workers.items()):
            if finished.is_finished:
                del self._workers[key]

    def _note_problem(self, problem: str | None) -> None:
        if problem is not None and problem != self._problem:
            _log.error("desired files not read", problem=problem)
        self._problem = problem

    def _note_files(self, goals: Mapping[str, reconcile_policy.Goal]) -> None:
        unreadable = sum(
            isinstance(goal, reconcile_policy.UnreadableFile) for goal in goals.values()
        )
        self._metrics.unreadable.set(unreadable + len(self._files.misnamed))
        if self._files.misnamed != self._misnamed:
            self._misnamed = self._files.misnamed
            _log.error("desired files with no key for a name", names=self._misnamed)

    def _stop_workers(self) -> None:
        for running in self._workers.values():
            running.stop()
        deadline = self._clock.monotonic() + _JOIN_S
        for running in self._workers.values():
            running.join(max(0.0, deadline - self._clock.monotonic()))


def _make_folder(folder: Path) -> None:
    try:
        atomic.make_folder(folder)
    except OSError as e:
        raise errors.NodeFault("make", str(folder), str(e)) from e

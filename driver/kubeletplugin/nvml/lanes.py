"""One lane per GPU: its calls run on separate threads, and a waiting caller gives up in time.

An NVML call can hang for minutes inside the driver (Xid 119), and nothing ends it: its thread is
blocked meanwhile. So no thread of ours enters NVML; each hands its task to the lane of the GPU,
and a thread without other work runs it.
A lane is hung while a call in it is overdue, and accepts no task meanwhile (circuit breaker).
"""

import contextvars
import functools
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from driver import clock, errors

T = TypeVar("T")
HUNG_S: Final = 8.0
"""Longest time of one call: with a poll every 5 s, a GPU that hangs is known to within 15 s."""
LIBRARY: Final = ""
"""The lane of calls that concern no GPU."""
MAX_TASKS: Final = 16
"""Concurrent tasks of a lane: a GPU's readers, and the one caller that holds it."""
_BREATH_S = 0.005
_MOST_IDLE: Final = 4
_IDLE_S: Final = 10.0
"""Threads that stay for the next tasks, and how long: a new one may wait long for a CPU."""
_Inbox = queue.SimpleQueue[Callable[[], bool]]
"""Tasks of one thread; each returns whether the thread stays."""
_local = threading.local()


@dataclass(eq=False, slots=True)
class LaneTask:
    """One task in a lane. `call` is its NVML call, since `started_at`; "" between calls."""

    lane: str
    limit_s: float
    time: clock.Clock
    call: str = ""
    started_at: float = 0.0
    abandoned: bool = False
    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    problem: BaseException | None = None

    def enter(self, call: str) -> None:
        """Record the next call. Raises Hung if the task was abandoned."""
        if self.abandoned:
            raise errors.Hung(self.lane, call, 0.0)
        self.started_at, self.call = self.time.monotonic(), call

    def leave(self) -> None:
        """Record that the call has returned."""
        self.call = ""

    def remaining_s(self) -> float:
        """Return the seconds until its call is overdue."""
        elapsed_s = self.time.monotonic() - self.started_at if self.call else 0.0
        return self.limit_s - elapsed_s

    def overdue_call(self) -> errors.Hung | None:
        """Return the call that has not returned in time."""
        if self.done.is_set() or self.remaining_s() > 0 or not (call := self.call):
            return None
        return errors.Hung(self.lane, call, self.time.monotonic() - self.started_at)

    def outcome(self) -> Any:  # noqa: ANN401 - of whatever act it was
        """Return the result of the finished task, or raise its exception; only once."""
        problem, self.problem = self.problem, None
        if problem is None:
            return self.result
        try:
            raise problem
        finally:
            del problem  # its traceback holds this frame and the task: a cycle at every timeout


def current_task() -> LaneTask | None:
    """Return the task that this thread runs."""
    return getattr(_local, "visit", None)


class Lanes:
    """Thread safe. A task's exception is raised to its caller; Hung if a call of it is overdue."""

    def __init__(self, time: clock.Clock, limit_s: float = HUNG_S) -> None:
        self.limit_s = limit_s
        self._time = time
        self._lock = threading.Lock()
        self._inside: dict[str, list[LaneTask]] = {}
        self._polled: dict[tuple[str, str], LaneTask] = {}
        self._idle: list[_Inbox] = []

    def hung_call(self, lane: str) -> errors.Hung | None:
        """Return the overdue call of the lane."""
        with self._lock:
            tasks = tuple(self._inside.get(lane, ()))
        return next((hung for task in tasks if (hung := task.overdue_call())), None)

    def has_hung(self) -> bool:
        """Return whether a call is overdue in any lane."""
        with self._lock:
            lanes = tuple(self._inside)
        return any(self.hung_call(lane) for lane in lanes)

    def call(
        self, lane: str, act: Callable[[], T], limit_s: float | None = None, name: str = ""
    ) -> T:
        """Run `act` and wait for it as long as its calls return.

        `name` stands for all of an act that calls something other than NVML.
        """
        task = self._submit(lane, act, limit_s, name)
        while not self._time.wait(task.done, max(task.remaining_s(), _BREATH_S)):
            if (hung := task.overdue_call()) is not None:
                task.abandoned = True
                raise hung
        return task.outcome()  # type: ignore[no-any-return]

    def poll(self, lane: str, key: str, act: Callable[[], T], patience_s: float) -> T | None:
        """Return the result of `act`, or None if it is not done yet: poll again.

        At most one task per lane and `key` runs at a time; it is never abandoned.
        """
        self.submit(lane, key, act)
        return self.poll_result(lane, key, patience_s)  # type: ignore[no-any-return]

    def submit(self, lane: str, key: str, act: Callable[[], object]) -> None:
        """Start `act`, unless the previous task of that key has not been collected."""
        if (lane, key) not in self._polled:
            self._polled[lane, key] = self._submit(lane, act)

    def poll_result(self, lane: str, key: str, patience_s: float) -> Any:  # noqa: ANN401 - of that act
        """See `poll`, for a task that was submitted."""
        task = self._polled[lane, key]
        if self._time.wait(task.done, patience_s):
            del self._polled[lane, key]
            return task.outcome()
        if (hung := task.overdue_call()) is not None:
            raise hung
        return None

    def gather(
        self, acts: Mapping[str, Callable[[], T]], within_s: float
    ) -> dict[str, T | errors.DeviceFault]:
        """Run acts in many lanes at once; return the result of each, or its DeviceFault."""
        results: dict[str, T | errors.DeviceFault] = {}
        tasks: dict[str, LaneTask] = {}
        for lane, act in acts.items():
            try:
                tasks[lane] = self._submit(lane, act)
            except errors.DeviceFault as fault:
                results[lane] = fault
        deadline = self._time.monotonic() + within_s
        for lane, task in tasks.items():
            try:
                results[lane] = self._await_until(task, deadline)
            except errors.DeviceFault as fault:
                results[lane] = fault
        return {lane: results[lane] for lane in acts}

    def _await_until(self, task: LaneTask, deadline: float) -> Any:  # noqa: ANN401 - of that act
        while not self._time.wait(task.done, max(task.remaining_s(), _BREATH_S)):
            hung, now = task.overdue_call(), self._time.monotonic()
            if hung is not None or now >= deadline:
                task.abandoned = True
                raise hung or errors.DeviceFault(task.lane, task.call, -1, "it goes on for long")
        return task.outcome()

    def _submit(
        self, lane: str, act: Callable[[], object], limit_s: float | None = None, name: str = ""
    ) -> LaneTask:
        if (hung := self.hung_call(lane)) is not None:
            raise hung
        task = LaneTask(lane, limit_s or self.limit_s, self._time)
        if name:
            task.enter(name)
        with self._lock:
            tasks = self._inside.setdefault(lane, [])
            if len(tasks) >= MAX_TASKS:
                raise errors.DeviceFault(
                    lane, tasks[0].call, -1, f"{MAX_TASKS} calls are under way"
                )
            tasks.append(task)
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name="nvml", daemon=True).start()
        context = contextvars.copy_context()  # a log's lines name their claim
        inbox.put(functools.partial(context.run, self._run, inbox, task, act))
        return task

    def _work(self, inbox: _Inbox) -> None:
        """Run tasks for as long as the thread stays."""
        stays = True
        while stays:
            try:
                run = inbox.get(timeout=_IDLE_S)
            except queue.Empty:
                stays = not self._retire(inbox)
            else:
                stays = run()

    def _retire(self, inbox: _Inbox) -> bool:
        """Remove an idle thread's inbox; return False if a task is about to be put there."""
        with self._lock:
            if inbox not in self._idle:
                return False
            self._idle.remove(inbox)
        return True

    def _run(self, inbox: _Inbox, task: LaneTask, act: Callable[[], object]) -> bool:
        """Run `act` on the thread of that inbox; return whether the thread stays for others."""
        _local.visit = task
        try:
            task.result = act()
        except BaseException as e:  # noqa: BLE001 - raised to the caller
            task.problem = e
        finally:
            with self._lock:
                tasks = self._inside[task.lane]
                tasks.remove(task)
                if not tasks:
                    del self._inside[task.lane]
                stays = len(self._idle) < _MOST_IDLE
                if stays:
                    self._idle.append(inbox)
            task.done.set()
        return stays

"""A lane a GPU: its calls run on threads of their own, and whoever waits for one gives up in time.

A call of NVML can hang for minutes inside the driver (Xid 119), and nothing ends it: the thread in
it is lost for so long. So no thread of ours enters NVML; it hands its act to the lane of the GPU.
A lane is hung while a call in it is overdue, and takes nothing meanwhile (a circuit breaker).
"""

import contextvars
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from driver import clock, errors

T = TypeVar("T")
HUNG_S: Final = 8.0
"""Longest time of one call: with a poll every 5 s, a GPU that hangs is known to within 15 s."""
LIBRARY: Final = ""
"""The lane of what concerns no GPU."""
MAX_TASKS: Final = 16
"""Acts in one lane at once: a GPU's readers, and the one caller that has it in hand."""
_BREATH_S = 0.005
_local = threading.local()


@dataclass(eq=False, slots=True)
class LaneTask:
    """One act in a lane. `call` is the call it is in, since `began`; "" between calls."""

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
        """Note the call that comes. Raises Hung where nobody waits for the act any more."""
        if self.abandoned:
            raise errors.Hung(self.lane, call, 0.0)
        self.started_at, self.call = self.time.monotonic(), call

    def leave(self) -> None:
        """Note that the call has returned."""
        self.call = ""

    def remaining_s(self) -> float:
        """Seconds until its call is overdue."""
        in_it_s = self.time.monotonic() - self.started_at if self.call else 0.0
        return self.limit_s - in_it_s

    def overdue_call(self) -> errors.Hung | None:
        """The call that has not returned in its time."""
        if self.done.is_set() or self.remaining_s() > 0 or not (call := self.call):
            return None
        return errors.Hung(self.lane, call, self.time.monotonic() - self.started_at)

    def outcome(self) -> Any:  # noqa: ANN401 - of whatever act it was
        """What the act returned, or raise what it raised; it is over."""
        if self.problem is not None:
            raise self.problem
        return self.result


def current_task() -> LaneTask | None:
    """The visit that this thread makes."""
    return getattr(_local, "visit", None)


class Lanes:
    """Thread safe. Whatever an act raises, its caller gets; Hung when a call of it is overdue."""

    def __init__(self, time: clock.Clock, limit_s: float = HUNG_S) -> None:
        self.limit_s = limit_s
        self._time = time
        self._lock = threading.Lock()
        self._inside: dict[str, list[LaneTask]] = {}
        self._polled: dict[tuple[str, str], LaneTask] = {}

    def hung_call(self, lane: str) -> errors.Hung | None:
        """The call of the lane that is overdue."""
        with self._lock:
            visits = tuple(self._inside.get(lane, ()))
        return next((hung for one in visits if (hung := one.overdue_call())), None)

    def has_hung(self) -> bool:
        """Whether a call is overdue in some lane."""
        with self._lock:
            lanes = tuple(self._inside)
        return any(self.hung_call(lane) for lane in lanes)

    def call(
        self, lane: str, act: Callable[[], T], limit_s: float | None = None, name: str = ""
    ) -> T:
        """Have the act done, and wait for it as long as its calls return.

        `name` stands for all of an act that calls something else than NVML.
        """
        visit = self._submit(lane, act, limit_s, name)
        while not self._time.wait(visit.done, max(visit.remaining_s(), _BREATH_S)):
            if (hung := visit.overdue_call()) is not None:
                visit.abandoned = True
                raise hung
        return visit.outcome()  # type: ignore[no-any-return]

    def poll(self, lane: str, what: str, act: Callable[[], T], patience_s: float) -> T | None:
        """What the act answers, or None where it is not done yet: then ask again.

        Of one lane the same thing is asked once at a time, and not given up.
        """
        self.submit(lane, what, act)
        return self.poll_result(lane, what, patience_s)  # type: ignore[no-any-return]

    def submit(self, lane: str, what: str, act: Callable[[], object]) -> None:
        """Have the act begun, unless the last one asked the same has not been answered."""
        if (lane, what) not in self._polled:
            self._polled[lane, what] = self._submit(lane, act)

    def poll_result(self, lane: str, what: str, patience_s: float) -> Any:  # noqa: ANN401 - of that act
        """See `ask`, of an act that was begun."""
        visit = self._polled[lane, what]
        if self._time.wait(visit.done, patience_s):
            del self._polled[lane, what]
            return visit.outcome()
        if (hung := visit.overdue_call()) is not None:
            raise hung
        return None

    def gather(
        self, acts: Mapping[str, Callable[[], T]], within_s: float
    ) -> dict[str, T | errors.DeviceFault]:
        """Have acts done in many lanes at once: what each returned, or its DeviceFault."""
        found: dict[str, T | errors.DeviceFault] = {}
        begun: dict[str, LaneTask] = {}
        for lane, act in acts.items():
            try:
                begun[lane] = self._submit(lane, act)
            except errors.DeviceFault as fault:
                found[lane] = fault
        until = self._time.monotonic() + within_s
        for lane, visit in begun.items():
            try:
                found[lane] = self._await_until(visit, until)
            except errors.DeviceFault as fault:
                found[lane] = fault
        return {lane: found[lane] for lane in acts}

    def _await_until(self, visit: LaneTask, until: float) -> Any:  # noqa: ANN401 - of that act
        while not self._time.wait(visit.done, max(visit.remaining_s(), _BREATH_S)):
            hung, now = visit.overdue_call(), self._time.monotonic()
            if hung is not None or now >= until:
                visit.abandoned = True
                raise hung or errors.DeviceFault(visit.lane, visit.call, -1, "it goes on for long")
        return visit.outcome()

    def _submit(
        self, lane: str, act: Callable[[], object], limit_s: float | None = None, name: str = ""
    ) -> LaneTask:
        if (hung := self.hung_call(lane)) is not None:
            raise hung
        visit = LaneTask(lane, limit_s or self.limit_s, self._time)
        if name:
            visit.enter(name)
        with self._lock:
            inside = self._inside.setdefault(lane, [])
            if len(inside) >= MAX_TASKS:
                raise errors.DeviceFault(
                    lane, inside[0].call, -1, f"{MAX_TASKS} calls are under way"
                )
            inside.append(visit)
        around = contextvars.copy_context()  # a log's lines name their claim
        name = f"nvml {lane}"
        threading.Thread(
            target=around.run, args=(self._run, visit, act), name=name, daemon=True
        ).start()
        return visit

    def _run(self, visit: LaneTask, act: Callable[[], object]) -> None:
        _local.visit = visit
        try:
            visit.result = act()
        except BaseException as e:  # noqa: BLE001 - handed to whoever waits
            visit.problem = e
        finally:
            with self._lock:
                inside = self._inside[visit.lane]
                inside.remove(visit)
                if not inside:
                    del self._inside[visit.lane]
            visit.done.set()

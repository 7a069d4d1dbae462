"""Faults as values, and the requests they apply to."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Request:
    """A request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]
    at: float
    """time.monotonic()"""
    raw: bytes = b""

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in {"1", "true"}

    @property
    def field_manager(self) -> str:
        return self.query.get("fieldManager", "")


@dataclass(frozen=True)
class Answer:
    """Answer with an error instead."""

    status: int
    reason: str = "Injected"
    retry_after_s: int = 0
    message: str = "injected"


@dataclass(frozen=True)
class Drop:
    """Close the connection without an answer."""


@dataclass(frozen=True)
class HalfOpen:
    """Never answer, and keep the connection open until the server closes."""


@dataclass(frozen=True)
class Delay:
    """Answer late."""

    seconds: float


@dataclass(frozen=True)
class Silence:
    """Accept the watch, then never send a frame."""


@dataclass(frozen=True)
class Frame:
    """Send this line as the watch's first frame, then go on."""

    line: bytes


@dataclass(frozen=True)
class Cut:
    """Accept the watch, send half a frame and drop the connection."""


@dataclass(frozen=True)
class End:
    """Accept the watch and end it at once, cleanly."""


Fault: TypeAlias = Answer | Drop | HalfOpen | Delay | Silence | Frame | Cut | End


def any_request(_: Request) -> bool:
    return True


def watches(request: Request) -> bool:
    return request.is_watch


def lists(request: Request) -> bool:
    return request.method == "GET" and not request.is_watch


def writes(request: Request) -> bool:
    return request.method != "GET"


@dataclass
class _Rule:
    fault: Fault
    when: Callable[[Request], bool]
    left: float


class Faults:
    """The faults in force; the first that fits a request happens to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []

    def add(
        self,
        fault: Fault,
        when: Callable[[Request], bool] = any_request,
        times: float = math.inf,
    ) -> None:
        """Let `fault` happen to the next `times` requests that fit, or to all until `clear`."""
        with self._lock:
            self._rules.append(_Rule(fault, when, times))

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def next_for(self, request: Request) -> Fault | None:
        with self._lock:
            for rule in self._rules:
                if rule.left > 0 and rule.when(request):
                    rule.left -= 1
                    return rule.fault
            return None

"""Records of calls: every call with its claims and its result."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.blackbox.proxy import wire

OK = "OK"


@dataclass(slots=True)
class Call:
    """One call. `code` is "" while it runs; `refused` says by UID what the plugin found wrong."""

    method: str
    service: str
    plugin: str
    claims: tuple[wire.Claim, ...] = ()
    code: str = ""
    reached: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    cdi: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answers: int = 0

    def is_good(self) -> bool:
        """Return whether it ended well, for each of its claims."""
        return self.code == OK and not any(self.refused.values())

    def names(self, claim: str) -> bool:
        """Return whether a claim of that name or UID is in it."""
        return any(claim in {item.name, item.uid} for item in self.claims)


class Records:
    """Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._connections = 0

    def begin(self, call: Call) -> Call:
        """A call comes."""
        with self._lock:
            self._calls.append(call)
        return call

    def connected(self) -> None:
        """A connection to a service comes."""
        with self._lock:
            self._connections += 1

    def connections(self) -> int:
        """To all services, since the start."""
        with self._lock:
            return self._connections

    def calls(self, method: str = "", claim: str = "") -> list[Call]:
        """Return the calls of a method, with a claim of that name or UID; the first one first."""
        with self._lock:
            calls = list(self._calls)
        return [
            call
            for call in calls
            if method in {"", call.method} and (not claim or call.names(claim))
        ]

    def mark(self) -> int:
        """Return how many there are, for `since`."""
        with self._lock:
            return len(self._calls)

    def since(self, mark: int, method: str = "", claim: str = "") -> list[Call]:
        """Same as `calls`, of those that came after `mark`."""
        with self._lock:
            later = self._calls[mark:]
        return [call for call in self.calls(method, claim) if any(call is late for late in later)]

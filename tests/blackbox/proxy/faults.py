"""Faults of a call on its way: it fails, waits, is held, or its connection is cut."""

import threading
from dataclasses import dataclass, field

import grpc

from tests.blackbox.proxy import wire

ALWAYS = 1 << 30
"""As a number of calls: until `lift`."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The plugin never hears of the call; the caller gets this code."""

    code: grpc.StatusCode = grpc.StatusCode.INTERNAL
    message: str = "on purpose: this call fails"


@dataclass(frozen=True, slots=True)
class Lose:
    """The plugin does what it is asked; its answer is lost, the caller gets this code."""

    code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE
    message: str = "on purpose: the answer is lost"


@dataclass(frozen=True, slots=True)
class Delay:
    """The call reaches the plugin so many seconds later."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection that the call came on is cut; all others of the plugin's go with it."""


@dataclass(frozen=True, slots=True)
class Block:
    """The call waits at the proxy until `release` is set, or until the caller gives up."""

    release: threading.Event = field(default_factory=threading.Event)


Fault = Fail | Lose | Delay | Drop | Block


@dataclass(slots=True)
class _Planned:
    method: str
    fault: Fault
    left: int
    claim: str


class Faults:
    """Thread safe. What is planned first happens first; one fault a call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._planned: list[_Planned] = []

    def plan(self, method: str, fault: Fault, times: int = ALWAYS, claim: str = "") -> None:
        """Plan a fault for the next calls of `method`, or only those with a claim named `claim`."""
        with self._lock:
            self._planned.append(_Planned(method, fault, times, claim))

    def take(self, method: str, claims: tuple[wire.Claim, ...]) -> Fault | None:
        """Return what happens to this call."""
        named = {claim.name for claim in claims}
        with self._lock:
            for planned in self._planned:
                if planned.method == method and planned.left and planned.claim in {"", *named}:
                    planned.left -= 1
                    return planned.fault
        return None

    def lift(self, method: str = "", claim: str = "") -> None:
        """Forget what is planned (for a method, for a claim), and let go of what is held."""
        with self._lock:
            gone = [
                planned
                for planned in self._planned
                if method in {"", planned.method} and claim in {"", planned.claim}
            ]
            self._planned = [planned for planned in self._planned if planned not in gone]
        for item in gone:
            if isinstance(item.fault, Block):
                item.fault.release.set()

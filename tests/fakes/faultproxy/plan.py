"""Plan of faults for requests and watch frames. Pure: the same seed, the same plan.

A plan is asked by kind and number: the fault of the seventh PATCH does not depend on what else
went through meanwhile, so a run is drawn again from its seed alone.
"""

import random  # noqa: TID251 - the same every time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias, TypeVar


class Kind(StrEnum):
    """Kind of a request, as far as its faults go."""

    GET = "get"
    LIST = "list"
    WATCH = "watch"
    CREATE = "create"
    PATCH = "patch"
    REPLACE = "replace"
    DELETE = "delete"


WRITES = (Kind.CREATE, Kind.PATCH, Kind.REPLACE, Kind.DELETE)
_VERBS = {
    "POST": Kind.CREATE,
    "PATCH": Kind.PATCH,
    "PUT": Kind.REPLACE,
    "DELETE": Kind.DELETE,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An error answer; the request does not reach the server."""

    status: int
    reason: str
    retry_after_s: int = 0


@dataclass(frozen=True, slots=True)
class ResetBefore:
    """The connection is reset before the request reaches the server."""


@dataclass(frozen=True, slots=True)
class ResetAfter:
    """The server has done it, and its answer is lost."""


@dataclass(frozen=True, slots=True)
class HalfOpen:
    """Accepted and never answered; dropped after `seconds`. The server hears nothing."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Slow:
    """The request reaches the server so late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class BlackHole:
    """Outage from here on: nothing passes on any connection for that long; then all goes on."""

    seconds: float


Fault: TypeAlias = Answer | ResetBefore | ResetAfter | HalfOpen | Slow | BlackHole


@dataclass(frozen=True, slots=True)
class Lose:
    """The frame never comes."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The frame comes twice in a row."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The frame comes, and once more after the next one."""


@dataclass(frozen=True, slots=True)
class Expire:
    """An ERROR frame of 410 comes in its place, and the stream ends."""


@dataclass(frozen=True, slots=True)
class Trickle:
    """The frame comes in pieces, over so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """Half of the frame comes, then a reset."""


FrameFault: TypeAlias = Lose | Duplicate | Replay | Expire | Trickle | Cut
Odds: TypeAlias = tuple[tuple[float, Fault], ...]
"""Probabilities that add up to 1 at most; what is left is no fault."""
FrameOdds: TypeAlias = tuple[tuple[float, FrameFault], ...]


class Chooser(Protocol):
    """Protocol of a plan. Numbers count from 0: requests by kind, frames by stream and apart from
    its bookmarks.
    """

    def of_request(self, kind: Kind, number: int) -> Fault | None:
        """Return what happens to the `number`-th request of a kind."""
        ...

    def of_frame(self, watch: int, frame: int, *, bookmark: bool) -> FrameFault | None:
        """Return what happens to a frame of the `watch`-th watch."""
        ...


@dataclass(frozen=True, slots=True)
class Script:
    """Exactly these faults."""

    requests: Mapping[tuple[Kind, int], Fault] = field(default_factory=dict)
    frames: Mapping[tuple[int, int], FrameFault] = field(default_factory=dict)
    bookmarks: bool = True

    def of_request(self, kind: Kind, number: int) -> Fault | None:
        return self.requests.get((kind, number))

    def of_frame(self, watch: int, frame: int, *, bookmark: bool) -> FrameFault | None:
        if bookmark and not self.bookmarks:
            return Lose()
        return self.frames.get((watch, frame))


@dataclass(frozen=True, slots=True)
class Seeded:
    """Faults by chance, the same for the same seed."""

    seed: int
    requests: Mapping[Kind, Odds] = field(default_factory=dict)
    frames: FrameOdds = ()
    bookmark_loss: float = 0.0

    def of_request(self, kind: Kind, number: int) -> Fault | None:
        return _drawn(self.requests.get(kind, ()), f"{self.seed}/{kind}/{number}")

    def of_frame(self, watch: int, frame: int, *, bookmark: bool) -> FrameFault | None:
        odds: FrameOdds = ((self.bookmark_loss, Lose()),) if bookmark else self.frames
        return _drawn(odds, f"{self.seed}/frame/{watch}/{frame}")


Drawn = TypeVar("Drawn")


def _drawn(odds: tuple[tuple[float, Drawn], ...], key: str) -> Drawn | None:
    left = random.Random(key).random()  # noqa: S311 - no secret
    for chance, fault in odds:
        left -= chance
        if left < 0:
            return fault
    return None


def kind_of(method: str, path: str, query: Mapping[str, str]) -> Kind:
    """Return what a request is; a GET of a collection is a list."""
    if method in _VERBS:
        return _VERBS[method]
    if query.get("watch") in {"1", "true"}:
        return Kind.WATCH
    return Kind.LIST if _is_collection(path) else Kind.GET


def _is_collection(path: str) -> bool:
    """`/api/v1/pods`, `/apis/group/v1/namespaces/ns/pods`; not one object, not `/version`."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    return parts[0] in {"api", "apis"} and len(rest) == 1


def name_of(fault: Fault | FrameFault) -> str:
    """Return a name for counting: `Answer 429`, `ResetAfter`."""
    return f"Answer {fault.status}" if isinstance(fault, Answer) else type(fault).__name__

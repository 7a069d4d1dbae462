"""Making who holds a target leave, and waiting until nobody does."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from driver import clock, ids
from driver.cli import output as out
from driver.cli.cordon import api, holders, targets

_LOOK_S = 1.0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Manner:
    """How: `force` evicts bare pods too; at most `within_s` are waited."""

    force: bool
    within_s: float


class Drain:
    """Of one target. Raises ApiError."""

    def __init__(self, at: api.Desk, target: targets.Target, say: Say, time: clock.Clock) -> None:
        self._desk = at
        self._target = target
        self._say = say
        self._clock = time
        self._never = threading.Event()
        self._asked: set[ids.PodUid] = set()
        self._told: dict[ids.Key, str] = {}

    def run(self, manner: Manner) -> tuple[holders.Holder, ...]:
        """Evict, and look until nobody holds it or the time is over; who holds it then."""
        deadline = self._clock.monotonic() + manner.within_s
        before: frozenset[ids.Key] = frozenset()
        while left := self._desk.holders(self._target):
            now = frozenset(one.claim for one in left)
            self._progress(before, now)
            before = now
            self._evict(left, force=manner.force)
            if self._is_vain(left, manner) or self._clock.monotonic() >= deadline:
                return left
            self._clock.wait(self._never, _LOOK_S)
        self._progress(before, frozenset())
        return ()

    def _evict(self, left: Iterable[holders.Holder], *, force: bool) -> None:
        for key, pod in holders.evictable(left, force=force).items():
            if pod.uid in self._asked:
                continue
            refused = self._desk.evict(pod)
            if not refused:
                self._asked.add(pod.uid)
                self._say(f"pod {key} evicted")
            elif self._told.get(key) != refused:
                self._told[key] = refused
                self._say(f"pod {key} is kept, asked again: {refused}")

    def _progress(self, before: frozenset[ids.Key], now: frozenset[ids.Key]) -> None:
        for key in sorted(before - now):
            self._say(f"claim {key} is gone, {len(now)} to go")

    def _is_vain(self, left: Iterable[holders.Holder], manner: Manner) -> bool:
        """Whether nobody of them will leave, however long it is waited."""
        going = {holders.Fate.EVICT, holders.Fate.LEAVING}
        going |= {holders.Fate.BARE} if manner.force else set()
        return not any(one.fate in going for one in left)


def answer(target: targets.Target, found: Iterable[holders.Holder], *, force: bool) -> out.Answer:
    """Who holds it, as a command prints it."""
    rows = [_row(one, force=force) for one in found]
    table = out.Table(
        tuple(map(out.Column, ("CLAIM", "HELD BY", "OWNER", "DEVICES", "FATE"))),
        [
            (one["claim"], one["heldBy"], one["owner"], ", ".join(one["devices"]), one["fate"])
            for one in rows
        ],
        f"nothing holds {target}",
    )
    return out.Answer({"target": str(target), "holders": rows}, (table,))


def _row(one: holders.Holder, *, force: bool) -> dict[str, Any]:
    evicted = force and one.fate is holders.Fate.BARE
    fate = holders.Fate.EVICT if evicted else one.fate
    return {
        "claim": one.claim,
        "heldBy": one.consumer,
        "owner": one.owner,
        "devices": [*one.devices],
        "fate": fate.value,
    }

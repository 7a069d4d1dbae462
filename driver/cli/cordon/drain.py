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
class DrainOptions:
    """How: `force` evicts bare pods too; at most `within_s` are waited."""

    force: bool
    within_s: float


class Drain:
    """Drain of one target. Raises ApiError."""

    def __init__(
        self,
        cluster_api: api.CordonApi,
        devices: targets.TargetDevices,
        say: Say,
        time: clock.Clock,
    ) -> None:
        self._desk = cluster_api
        self._devices = devices
        self._say = say
        self._clock = time
        self._never = threading.Event()
        self._asked: set[ids.PodUid] = set()
        self._told: dict[ids.Key, str] = {}

    def run(self, manner: DrainOptions) -> tuple[holders.Holder, ...]:
        """Evict, and look until nobody holds it or the time is over; who holds it then."""
        deadline = self._clock.monotonic() + manner.within_s
        previous: frozenset[ids.Key] = frozenset()
        while left := self._desk.holders(self._devices):
            now = frozenset(holder.claim for holder in left)
            self._progress(previous, now)
            previous = now
            self._evict(left, force=manner.force)
            if self._is_vain(left, manner) or self._clock.monotonic() >= deadline:
                return left
            self._clock.wait(self._never, _LOOK_S)
        self._progress(previous, frozenset())
        return ()

    def _evict(self, left: Iterable[holders.Holder], *, force: bool) -> None:
        for key, pod in holders.evictable_holders(left, force=force).items():
            if pod.uid in self._asked:
                continue
            refused = self._desk.evict(pod)
            if not refused:
                self._asked.add(pod.uid)
                self._say(f"pod {key} evicted")
            elif self._told.get(key) != refused:
                self._told[key] = refused
                self._say(f"pod {key} is kept, asked again: {refused}")

    def _progress(self, previous: frozenset[ids.Key], now: frozenset[ids.Key]) -> None:
        for key in sorted(previous - now):
            self._say(f"claim {key} is gone, {len(now)} to go")

    def _is_vain(self, left: Iterable[holders.Holder], manner: DrainOptions) -> bool:
        """Return whether none of them will leave, however long it waits."""
        going = {holders.HolderFate.EVICT, holders.HolderFate.LEAVING}
        going |= {holders.HolderFate.BARE} if manner.force else set()
        return not any(holder.fate in going for holder in left)


def build_answer(
    target: targets.Target, result: Iterable[holders.Holder], *, force: bool
) -> out.Answer:
    """Return the holders, as a command prints them."""
    rows = [_row(holder, force=force) for holder in result]
    table = out.Table(
        tuple(map(out.Column, ("CLAIM", "HELD BY", "OWNER", "DEVICES", "FATE"))),
        [
            (
                holder["claim"],
                holder["heldBy"],
                holder["owner"],
                ", ".join(holder["devices"]),
                holder["fate"],
            )
            for holder in rows
        ],
        f"nothing holds {target}",
    )
    return out.Answer({"target": str(target), "holders": rows}, (table,))


def _row(holder: holders.Holder, *, force: bool) -> dict[str, Any]:
    evicted = force and holder.fate is holders.HolderFate.BARE
    fate = holders.HolderFate.EVICT if evicted else holder.fate
    return {
        "claim": holder.claim,
        "heldBy": holder.consumer,
        "owner": holder.owner,
        "devices": [*holder.devices],
        "fate": fate.value,
    }

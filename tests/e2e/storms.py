"""Faults for controllers under load: what their requests meet, and kills of whoever leads."""

import contextlib
import threading
from collections.abc import Iterator

from tests.e2e import replicas
from tests.fakes.faultproxy import plan

BUSY: plan.Odds = (
    (0.01, plan.Answer(429, "TooManyRequests", retry_after_s=1)),
    (0.01, plan.Answer(500, "InternalError")),
    (0.005, plan.Answer(503, "ServiceUnavailable")),
    (0.005, plan.Answer(504, "Timeout")),
    (0.01, plan.ResetBefore()),
    (0.01, plan.Slow(0.5)),
    (0.001, plan.HalfOpen(8)),
    (0.0005, plan.BlackHole(4)),
)
WRITES: plan.Odds = (*BUSY, (0.03, plan.ResetAfter()), (0.03, plan.Answer(409, "Conflict")))
LEASE: plan.Odds = (
    (0.02, plan.Answer(500, "InternalError")),
    (0.02, plan.ResetAfter()),
    (0.005, plan.HalfOpen(6)),
)
FRAMES: plan.FrameOdds = (
    (0.002, plan.Lose()),
    (0.01, plan.Duplicate()),
    (0.01, plan.Replay()),
    (0.0003, plan.Expire()),
    (0.003, plan.Trickle(1.0)),
    (0.0003, plan.Cut()),
)


def storm(seed: int) -> plan.Seeded:
    """The faults of one replica's proxy."""
    return plan.Seeded(
        seed,
        {
            plan.Kind.PATCH: WRITES,
            plan.Kind.CREATE: WRITES,
            plan.Kind.REPLACE: LEASE,
            plan.Kind.GET: BUSY,
            plan.Kind.LIST: BUSY,
            plan.Kind.WATCH: (
                *BUSY,
                (0.05, plan.Answer(410, "Expired")),
                (0.01, plan.HalfOpen(20)),
            ),
        },
        FRAMES,
        bookmark_loss=0.3,
    )


def upset(ours: replicas.Replicas, stop: threading.Event, every_s: float) -> None:
    """Kill the leader and rotate the token in turn, each once in `every_s`.

    Between two leaders it waits for the next one.
    """
    turn = 0
    while not stop.wait(every_s / 2):
        turn += 1
        if turn % 2:
            while not ours.kill_leader() and not stop.wait(1.0):
                pass
        else:
            ours.rotate()


def revive(ours: replicas.Replicas, stop: threading.Event) -> None:
    """Start again whoever has ended."""
    while not stop.wait(2.0):
        ours.revive()


@contextlib.contextmanager
def around(ours: replicas.Replicas, every_s: float) -> Iterator[threading.Event]:
    """Meanwhile upset the replicas and start them again; yield what ends both when it is set."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=upset, args=(ours, stop, every_s)),
        threading.Thread(target=revive, args=(ours, stop)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield stop
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)

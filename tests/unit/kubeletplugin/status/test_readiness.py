import threading

import pytest

from driver import errors, ids, reasons
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import checkpoint
from driver.kubeletplugin.status import readiness
from tests.fakes import clock as clocks
from tests.fakes import conditions as fakes

REF = ports.ClaimRef("default", "claim", ids.ClaimUid("claim-uid"))
OVERLAP = reasons.Reason.DEVICE_OVERLAP
NO = ports.Refused(OVERLAP, "held")
READY = (True, "Prepared", False)
STILL_NO, CLEARED = (False, "DeviceOverlap", False), (None, "RefusalCleared", False)


class World:
    """A plugin whose claims would be refused, or not, as a test says."""

    def __init__(self) -> None:
        self.time = clocks.FakeClock()
        self.conditions = fakes.Conditions()
        self.answer: ports.Refused | errors.RationError | None = NO
        self.asked: list[str] = []
        self.refusals = readiness.ReadinessTracker(self.conditions, self.check, self.time)

    def check(self, ref: ports.ClaimRef) -> ports.Refused | None:
        self.asked.append(ref.name)
        if isinstance(self.answer, errors.RationError):
            raise self.answer
        return self.answer

    def refuse(self, ref: ports.ClaimRef = REF, *, permanent: bool = False) -> None:
        self.refusals.set_refused(ref, OVERLAP, "held", permanent=permanent)

    def look(self, seconds: float = readiness.EVERY_S) -> None:
        """Let time pass, and look as often as the thread would."""
        for _ in range(int(seconds / readiness.EVERY_S)):
            self.time.advance(readiness.EVERY_S)
            self.refusals.check_due(threading.Event())

    def said(self) -> list[tuple[bool | None, str, bool]]:
        return self.conditions.of("claim")


@pytest.fixture
def world() -> World:
    return World()


def test_a_refusal_that_passes_is_said_to_be_cleared_once(world: World) -> None:
    world.refuse()
    world.look(4)
    assert world.said() == [STILL_NO]
    world.answer = None
    world.look(60)
    assert world.said() == [STILL_NO, CLEARED]
    assert len(world.asked) == 3


def test_a_permanent_refusal_is_said_to_be_one_and_not_looked_at(world: World) -> None:
    world.refuse(permanent=True)
    world.look(10)
    assert world.said() == [(False, "DeviceOverlap", True)]
    assert world.asked == []


def test_a_claim_that_is_prepared_or_unprepared_is_not_looked_at_any_more(world: World) -> None:
    for over in (world.refusals.set_prepared, world.refusals.remove):
        world.refuse()
        over(REF)
    world.look(10)
    assert world.asked == []
    assert world.said() == [STILL_NO, STILL_NO]


def test_a_claim_is_reported_ready_at_the_next_check_unless_deleted(
    world: World,
) -> None:
    world.refusals.set_prepared(REF)
    assert world.said() == []
    world.look(4)
    assert world.said() == [READY]
    world.refusals.set_prepared(REF)
    world.refusals.remove(REF)
    world.look(4)
    assert world.said() == [READY]
    world.refusals.set_prepared(REF)
    world.refuse()
    world.look(4)
    assert world.said() == [READY, STILL_NO]


def test_a_claim_that_was_prepared_during_a_look_is_not_said_to_be_cleared(world: World) -> None:
    world.refuse()

    def check(ref: ports.ClaimRef) -> None:
        world.refusals.set_prepared(ref)

    world.refusals = readiness.ReadinessTracker(world.conditions, check, world.time)
    world.refuse()
    world.look(4)
    assert world.said()[-1] == READY


@pytest.mark.parametrize(
    "answer",
    [
        errors.NotFound(404, "NotFound", "gone"),
        ports.Refused(reasons.Reason.CLAIM_REPLACED, "another UID"),
    ],
)
def test_a_claim_that_is_gone_is_forgotten(
    world: World, answer: ports.Refused | errors.RationError
) -> None:
    world.refuse()
    world.answer = answer
    world.look(10)
    assert len(world.asked) == 1
    assert world.said() == [STILL_NO]


@pytest.mark.parametrize(
    "trouble",
    [
        errors.Forbidden(403, "Forbidden", "no"),
        errors.NodeFault("lock", "GPU-0", "was busy"),
        errors.DeviceFault("GPU-0", "reading it", 15, "lost"),
    ],
)
def test_a_look_that_fails_says_nothing_and_is_repeated(
    world: World, trouble: errors.RationError
) -> None:
    world.refuse()
    world.answer = trouble
    world.look(10)
    assert world.said() == [STILL_NO]
    world.answer = None
    world.look()
    assert world.said() == [STILL_NO, CLEARED]


def test_without_an_api_server_a_look_ends_at_the_first_claim(world: World) -> None:
    for name in ("one", "two", "three"):
        world.refuse(ports.ClaimRef("default", name, ids.ClaimUid(name)))
    world.answer = errors.Unreachable(0, "", "connection refused")
    world.look()
    assert world.asked == ["one"]


def test_unreadable_claims_are_checked_with_a_backoff(world: World) -> None:
    world.answer = None
    pauses = []
    for _ in range(8):
        world.refuse()
        began, count = world.time.elapsed_s, len(world.asked)
        while len(world.asked) == count:
            world.look()
        pauses.append(world.time.elapsed_s - began)
    assert pauses == [2, 4, 8, 16, 32, 60, 60, 60]


def test_a_claim_is_forgotten_ten_minutes_after_its_last_refusal(world: World) -> None:
    world.refuse()
    world.look(readiness.WATCH_S)
    requested = len(world.asked)
    world.look(60)
    assert len(world.asked) == requested
    world.refuse()
    world.look()
    assert len(world.asked) == requested + 1


def test_no_more_than_so_many_claims_are_watched_and_the_newest_are(world: World) -> None:
    for number in range(readiness.MAX_WATCHED + 1):
        world.refuse(ports.ClaimRef("default", f"c{number}", ids.ClaimUid(str(number))))
    world.look()
    assert len(world.asked) == readiness.MAX_WATCHED
    assert "c0" not in world.asked


def test_readiness_from_before_this_process_is_reported_again(world: World) -> None:
    done, begun = checkpoint.State.COMPLETED, checkpoint.State.STARTED
    half = ports.ClaimRef("default", "half", ids.ClaimUid("half"))
    world.refusals.restore(
        [
            checkpoint.Record(REF, done, "boot", (), ()),
            checkpoint.Record(half, begun, "boot", (), ()),
        ]
    )
    world.look()
    assert [(name, word.holds) for name, word in world.conditions.said] == [("claim", True)]


def test_the_thread_looks_until_it_is_told_to_stop(world: World) -> None:
    stop = threading.Event()

    def check(ref: ports.ClaimRef) -> None:
        assert ref == REF
        stop.set()

    world.refusals = readiness.ReadinessTracker(world.conditions, check, world.time)
    world.refuse()
    world.refusals.run(stop)
    assert world.said()[-1] == CLEARED

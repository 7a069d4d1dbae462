import dataclasses
from dataclasses import dataclass, field

from driver import errors, ids, reasons
from driver.kubeletplugin import ports
from driver.kubeletplugin.prepare import release_wait
from driver.resources.dra import claims
from tests.fakes import clock as clocks
from tests.support.builders import objects

MINE = ports.ClaimRef("default", "mine", ids.ClaimUid("mine-uid"))
HOLDER = ports.ClaimRef("default", "holder", ids.ClaimUid(objects.uid_of("holder")))
STAYS = ports.ClaimRef("default", "stays", ids.ClaimUid(objects.uid_of("stays")))
HELD = ports.Refused(reasons.Reason.DEVICE_OVERLAP, "held", holders=(HOLDER,))


@dataclass
class Inner:
    answers: list[ports.Prepared | ports.Refused]
    asked: int = 0

    def prepare(
        self, ref: ports.ClaimRef, cancelled: ports.Cancelled
    ) -> ports.Prepared | ports.Refused:
        assert ref == MINE
        assert not cancelled() or self.asked == 0
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def unprepare(self, ref: ports.ClaimRef) -> ports.Refused | None:
        del ref
        return None

    def check(self, ref: ports.ClaimRef) -> ports.Refused | None:
        assert ref == MINE
        answer = self.answers[0]
        return answer if isinstance(answer, ports.Refused) else None


@dataclass
class Reader:
    claim: claims.Claim | errors.ApiError
    read_refs: list[ports.ClaimRef] = field(default_factory=list)

    def read(self, ref: ports.ClaimRef) -> claims.Claim:
        self.read_refs.append(ref)
        if isinstance(self.claim, errors.ApiError):
            raise self.claim
        return self.claim


@dataclass
class Several:
    """Claims that are allocated, but for these."""

    but: dict[ids.ClaimUid, errors.ApiError]
    read_refs: list[ports.ClaimRef] = field(default_factory=list)

    def read(self, ref: ports.ClaimRef) -> claims.Claim:
        self.read_refs.append(ref)
        if ref.uid in self.but:
            raise self.but[ref.uid]
        return objects.claim(ref.name, status=objects.allocated("node-a", "gpu-0"))


def prepare(
    inner: Inner, holder: claims.Claim | errors.ApiError, *, cancelled: bool = False
) -> ports.Prepared | ports.Refused:
    waiting = release_wait.ReleaseWaiter(inner, Reader(holder), clocks.FakeClock())
    return waiting.prepare(MINE, lambda: cancelled)


GONE = errors.NotFound(404, "NotFound", "gone")
DONE = ports.Prepared(())


def test_a_holder_that_is_gone_from_the_api_is_waited_for() -> None:
    inner = Inner([HELD, HELD, DONE])
    assert prepare(inner, GONE) == DONE
    assert inner.asked == 3


def test_one_departed_holder_is_enough_and_is_checked_first_afterwards() -> None:
    crowd = dataclasses.replace(HELD, holders=(STAYS, HOLDER))
    inner = Inner([crowd, crowd, crowd, DONE])
    reader = Several({HOLDER.uid: GONE})
    waiting = release_wait.ReleaseWaiter(inner, reader, clocks.FakeClock())
    assert waiting.prepare(MINE, lambda: False) == DONE
    assert reader.read_refs == [STAYS, HOLDER, HOLDER, HOLDER]


def test_holders_that_all_stay_are_not_awaited() -> None:
    crowd = dataclasses.replace(HELD, holders=(STAYS, HOLDER))
    reader = Several({})
    waiting = release_wait.ReleaseWaiter(Inner([crowd]), reader, clocks.FakeClock())
    assert waiting.prepare(MINE, lambda: False) == crowd
    assert reader.read_refs == [STAYS, HOLDER]


def test_a_holder_that_lost_its_allocation_or_its_identity_is_waited_for() -> None:
    assert prepare(Inner([HELD, DONE]), objects.claim("holder")) == DONE
    other = objects.claim("another", status=objects.allocated("node-a", "gpu-0"))
    assert prepare(Inner([HELD, DONE]), other) == DONE


def test_a_holder_that_still_has_the_device_is_a_refusal_at_once() -> None:
    inner = Inner([HELD])
    holder = objects.claim("holder", status=objects.allocated("node-a", "gpu-0"))
    assert prepare(inner, holder) == HELD
    assert inner.asked == 1


def test_an_api_server_that_does_not_answer_is_a_refusal() -> None:
    inner = Inner([HELD])
    assert prepare(inner, errors.Unreachable(0, "", "down")) == HELD
    assert inner.asked == 1


def test_the_wait_ends_after_half_a_minute() -> None:
    inner = Inner([HELD])
    assert prepare(inner, GONE) == HELD
    assert 100 < inner.asked < 200


def test_a_cancelled_call_ends_the_wait() -> None:
    inner = Inner([HELD])
    assert prepare(inner, GONE, cancelled=True) == HELD
    assert inner.asked == 1


def test_another_refusal_is_passed_on() -> None:
    refused = ports.Refused(reasons.Reason.CLAIM_REPLACED, "x")
    assert prepare(Inner([refused]), GONE) == refused

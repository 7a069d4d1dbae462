import pytest

from driver.scheduling.queues import usage_history

HOUR = 3600.0


def kept(half_life_s: float = HOUR) -> usage_history.UsageHistory:
    made = usage_history.UsageHistory()
    made.set_half_life("a", half_life_s)
    made.advance(0.0, {})
    return made


def test_steady_use_comes_to_be_the_average() -> None:
    made = kept()
    made.advance(20 * HOUR, {"a": 0.25})
    assert made.average("a") == pytest.approx(0.25, abs=1e-6)


def test_half_of_the_past_is_forgotten_after_each_half_life() -> None:
    made = kept()
    made.advance(20 * HOUR, {"a": 1.0})
    made.advance(21 * HOUR, {})
    assert made.average("a") == pytest.approx(0.5, abs=1e-6)
    made.advance(23 * HOUR, {})
    assert made.average("a") == pytest.approx(0.125, abs=1e-6)


def test_it_does_not_matter_in_how_many_steps_time_passes() -> None:
    one, many = kept(), kept()
    one.advance(HOUR, {"a": 0.5})
    for minute in range(1, 61):
        many.advance(60.0 * minute, {"a": 0.5})
    assert one.average("a") == pytest.approx(many.average("a"), rel=1e-12)


def test_time_that_stands_still_or_steps_back_changes_nothing() -> None:
    made = kept()
    made.advance(HOUR, {"a": 1.0})
    before = made.average("a")
    made.advance(HOUR, {"a": 1.0})
    made.advance(0.5 * HOUR, {"a": 1.0})
    assert made.average("a") == before


def test_it_goes_on_from_what_was_written() -> None:
    made, other = kept(), usage_history.UsageHistory()
    made.advance(3 * HOUR, {"a": 0.5})
    other.set_half_life("a", HOUR)
    used = made.usage_seconds("a")
    assert used is not None
    other.resume("a", 3 * HOUR, used)
    for one in (made, other):
        one.advance(5 * HOUR, {"a": 0.1})
    assert made.average("a") == other.average("a")


def test_what_was_written_before_what_is_known_does_not_count() -> None:
    made = kept()
    made.advance(3 * HOUR, {"a": 0.5})
    before = made.average("a")
    made.resume("a", 2 * HOUR, 1e9)
    assert made.average("a") == before


def test_another_half_life_keeps_the_average() -> None:
    made = kept()
    made.advance(3 * HOUR, {"a": 0.5})
    before = made.average("a")
    made.set_half_life("a", 7 * HOUR)
    assert made.average("a") == pytest.approx(before)


def test_without_a_half_life_nothing_is_remembered() -> None:
    made = kept()
    made.set_half_life("a", 0.0)
    assert not made.has_history("a")
    assert (made.average("a"), made.usage_seconds("a")) == (0.0, None)


def test_a_queue_that_went_is_forgotten() -> None:
    made = kept()
    made.advance(HOUR, {"a": 1.0})
    made.forget("a")
    made.set_half_life("a", HOUR)
    assert made.average("a") == 0.0

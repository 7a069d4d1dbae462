import pytest

from driver.scheduling.queues import usage_history

HOUR = 3600.0


def kept(half_life_s: float = HOUR) -> usage_history.UsageHistory:
    history = usage_history.UsageHistory()
    history.set_half_life("a", half_life_s)
    history.advance(0.0, {})
    return history


def test_steady_use_comes_to_be_the_average() -> None:
    history = kept()
    history.advance(20 * HOUR, {"a": 0.25})
    assert history.average("a") == pytest.approx(0.25, abs=1e-6)


def test_half_of_the_past_is_forgotten_after_each_half_life() -> None:
    history = kept()
    history.advance(20 * HOUR, {"a": 1.0})
    history.advance(21 * HOUR, {})
    assert history.average("a") == pytest.approx(0.5, abs=1e-6)
    history.advance(23 * HOUR, {})
    assert history.average("a") == pytest.approx(0.125, abs=1e-6)


def test_it_does_not_matter_in_how_many_steps_time_passes() -> None:
    history, many = kept(), kept()
    history.advance(HOUR, {"a": 0.5})
    for minute in range(1, 61):
        many.advance(60.0 * minute, {"a": 0.5})
    assert history.average("a") == pytest.approx(many.average("a"), rel=1e-12)


def test_time_that_stands_still_or_steps_back_changes_nothing() -> None:
    history = kept()
    history.advance(HOUR, {"a": 1.0})
    previous = history.average("a")
    history.advance(HOUR, {"a": 1.0})
    history.advance(0.5 * HOUR, {"a": 1.0})
    assert history.average("a") == previous


def test_it_goes_on_from_what_was_written() -> None:
    history, other = kept(), usage_history.UsageHistory()
    history.advance(3 * HOUR, {"a": 0.5})
    other.set_half_life("a", HOUR)
    used = history.usage_seconds("a")
    assert used is not None
    other.resume("a", 3 * HOUR, used)
    for item in (history, other):
        item.advance(5 * HOUR, {"a": 0.1})
    assert history.average("a") == other.average("a")


def test_older_written_history_does_not_count() -> None:
    history = kept()
    history.advance(3 * HOUR, {"a": 0.5})
    previous = history.average("a")
    history.resume("a", 2 * HOUR, 1e9)
    assert history.average("a") == previous


def test_another_half_life_keeps_the_average() -> None:
    history = kept()
    history.advance(3 * HOUR, {"a": 0.5})
    previous = history.average("a")
    history.set_half_life("a", 7 * HOUR)
    assert history.average("a") == pytest.approx(previous)


def test_without_a_half_life_nothing_is_remembered() -> None:
    history = kept()
    history.set_half_life("a", 0.0)
    assert not history.has_history("a")
    assert (history.average("a"), history.usage_seconds("a")) == (0.0, None)


def test_a_queue_that_went_is_forgotten() -> None:
    history = kept()
    history.advance(HOUR, {"a": 1.0})
    history.forget("a")
    history.set_half_life("a", HOUR)
    assert history.average("a") == 0.0

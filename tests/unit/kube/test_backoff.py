from driver.kube import backoff
from tests.fakes.clock import no_jitter

PACE = backoff.Pace(base_s=1.0, max_s=30.0)


def full_jitter() -> float:
    return 1.0


def test_each_wait_is_twice_the_last_up_to_the_maximum() -> None:
    waiting = backoff.Backoff(PACE, no_jitter)
    assert [waiting.after_failure() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_success_makes_the_next_failure_the_first() -> None:
    waiting = backoff.Backoff(PACE, no_jitter)
    waiting.after_failure()
    waiting.after_failure()
    waiting.reset()
    assert waiting.after_failure() == 1


def test_jitter_only_ever_adds() -> None:
    assert PACE.wait_s(1, no_jitter) == 1
    assert PACE.wait_s(1, full_jitter) == 1.5


def test_the_servers_retry_after_is_the_minimum() -> None:
    assert PACE.wait_s(1, no_jitter, at_least_s=7) == 7
    assert PACE.wait_s(1, no_jitter, at_least_s=90) == 90
    assert PACE.wait_s(6, no_jitter, at_least_s=7) == 30


def test_a_year_of_failures_is_still_a_number() -> None:
    assert PACE.wait_s(10**6, no_jitter) == 30

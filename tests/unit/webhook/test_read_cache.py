"""Tests that objects that a pod's two webhooks need are read once."""

from driver.webhook import read_cache
from tests.fakes import clock


class Source:
    """Gives its value, and counts how often."""

    def __init__(self, value: str | None) -> None:
        self.value = value
        self.reads = 0

    def read(self) -> str | None:
        self.reads += 1
        return self.value


def test_a_value_is_read_again_once_it_is_old() -> None:
    time, source = clock.FakeClock(), Source("first")
    values = read_cache.RecentReads[str](time, 2.0)
    assert values.get("key", source.read) == "first"
    source.value = "second"
    time.advance(1.9)
    assert values.get("key", source.read) == "first"
    time.advance(0.1)
    assert values.get("key", source.read) == "second"
    assert source.reads == 2


def test_missing_objects_are_not_cached() -> None:
    source = Source(None)
    values = read_cache.RecentReads[str](clock.FakeClock(), 2.0)
    assert values.get("key", source.read) is None
    source.value = "made"
    assert values.get("key", source.read) == "made"


def test_it_never_holds_more_than_so_many() -> None:
    source = Source("value")
    values = read_cache.RecentReads[str](clock.FakeClock(), 2.0)
    for key in range(3000):
        values.get(key, source.read)
    values.get(2999, source.read)
    assert source.reads == 3000
    values.get(0, source.read)
    assert source.reads == 3001

"""A watch that yields the events it is given."""

from collections.abc import Iterator

from driver.kube.http import watch_stream


class Stream:
    def __init__(self, events: Iterator[watch_stream.WatchEvent]) -> None:
        self._events = events

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> watch_stream.WatchEvent:
        return next(self._events)

    def interrupt(self) -> None: ...

    def close(self) -> None: ...

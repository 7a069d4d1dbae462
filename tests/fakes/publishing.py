"""A publisher that runs, as the process runs it."""

import threading
from typing import Protocol

from driver.kubeletplugin import newest, publisher
from tests.fakes import plugin_shell


class Running:
    """A publisher on its threads."""

    def __init__(self, made: publisher.Publisher, turn: newest.Newest) -> None:
        self.publisher = made
        self._turn = turn
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=run, args=(self._stop,)) for run in (made.slices.run, made.run)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        self.publisher.slices.interrupt()
        self.publisher.interrupt()
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()
        self._turn.leave()


class Start(Protocol):
    """Start one more, which sees the GPUs of the fixture unless told of others."""

    def __call__(self, others: plugin_shell.Gpus | None = None) -> Running: ...

"""State shared by all requests."""

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.fakes.apiserver import faults, storage

Object = dict[str, Any]
Policy: TypeAlias = Callable[[faults.Request], str | None]
"""An admission policy: a text refuses the write."""


class State:
    """Objects, history, faults, and what was asked so far."""

    def __init__(self, store: storage.Storage, broken: faults.Faults, bookmark_s: float) -> None:
        self.storage = store
        self.faults = broken
        self.bookmark_s = bookmark_s
        self.closed = threading.Event()
        self.requests: list[faults.Request] = []
        self.tokens: set[str] | None = None
        self.policies: list[Policy] = []
        self.git_version = "v1.37.1"
        self.texts: dict[str, str] = {}
        self.lacking: set[str] = set()
        self.continues: dict[str, tuple[list[Object], int]] = {}

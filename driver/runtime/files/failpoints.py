"""Points between two acts at which a process may die; tests stop there, the product does not."""

from typing import Protocol


class Observer(Protocol):
    """Called each time an act is done."""

    def on_point(self, point: str) -> None:
        """Observe an act just done, named by `point`: `record started: temporary written`."""
        ...


class _NoObserver:
    def on_point(self, point: str) -> None:
        del point


NO_OBSERVER: Observer = _NoObserver()
"""Observer used by the product."""

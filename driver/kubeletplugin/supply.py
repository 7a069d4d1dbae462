"""What this node has to publish: its GPUs, looked at now and then, as a pool of devices."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from driver import clock, errors, ids, reasons
from driver.devices import model
from driver.kube import backoff
from driver.resources import slices

_log = structlog.get_logger(__name__)
_DRIVER_ABSENT = frozenset({9, 12})
"""NVML_ERROR_DRIVER_NOT_LOADED, NVML_ERROR_LIBRARY_NOT_FOUND (nvml.h)."""

Look = Callable[[], model.Inventory]
"""The node's GPUs as they are now. Raises DeviceFault."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with the node's devices, for its event."""

    reason: reasons.Reason
    message: str


@dataclass(frozen=True, slots=True)
class Offer:
    """What to publish, and what is wrong. Without a pool, what is published stays as it is."""

    pool: slices.Pool | None
    problem: Problem | None


class Supply:
    """Used by one thread. A GPU driver that is absent is an empty pool, and looked for again."""

    def __init__(
        self, look: Look, rediscover_s: float, looking: backoff.Backoff, clock: clock.Clock
    ) -> None:
        self._look = look
        self._rediscover_s = rediscover_s
        self._looking = looking
        self._clock = clock
        self._due_at = -math.inf
        self._inventory: model.Inventory | None = None
        self._problem: Problem | None = None

    def due_in_s(self) -> float:
        """Seconds until the GPUs should be looked at again."""
        return max(0.0, self._due_at - self._clock.monotonic())

    def refresh(self) -> None:
        """Look at the GPUs, if it is time."""
        now = self._clock.monotonic()
        if now < self._due_at:
            return
        try:
            self._inventory = self._look()
        except errors.DeviceFault as e:
            if e.code in _DRIVER_ABSENT:
                self._inventory = model.Inventory()
            self._problem = Problem(reasons.Reason.DRIVER_NOT_READY, str(e))
            wait_s = self._looking.after_failure()
            _log.warning("GPUs not readable", error=str(e), next_look_s=round(wait_s, 1))
        else:
            self._looking.reset()
            self._problem = None
            wait_s = self._rediscover_s
        self._due_at = now + wait_s

    def offer(self, driver: str, node: ids.NodeName, allocator: str) -> Offer:
        """The pool of what was seen last."""
        if self._inventory is None:
            return Offer(None, self._problem)
        try:
            pool = slices.pool_of(self._inventory, driver, node, allocator)
        except errors.BadInput as e:
            return Offer(None, Problem(reasons.Reason.SLICES_INVALID, str(e)))
        return Offer(pool, self._problem)

"""What this node has to publish: its GPUs, looked at now and then, as a pool of devices."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import structlog

from driver import clock, errors, ids, reasons
from driver.api import offerings
from driver.devices import faces, model
from driver.kube import backoff
from driver.kubeletplugin.publish import handover, in_use_devices
from driver.resources import fields
from driver.resources.dra import slices
from driver.resources.publish import slice_builder

_log = structlog.get_logger(__name__)
_DRIVER_ABSENT = frozenset({9, 12})
"""NVML_ERROR_DRIVER_NOT_LOADED, NVML_ERROR_LIBRARY_NOT_FOUND (nvml.h)."""

NON_BLOCKING = frozenset({reasons.Reason.GPU_UNREADABLE})
"""Problems that do not make the slices wrong: the other GPUs are served as they should be."""

ReadGpus = Callable[[], model.Inventory]
"""The node's GPUs as they are now. Raises DeviceFault."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with the node's devices, for its event."""

    reason: reasons.Reason
    message: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.message}"


@dataclass(frozen=True, slots=True)
class PoolUpdate:
    """What to publish, and what is wrong. Without a pool, what is published stays as it is."""

    pool: slice_builder.Pool | None
    problems: tuple[Problem, ...] = ()


def _no_taints(_inventory: model.Inventory) -> slice_builder.Taints:
    return {}


def _no_devices() -> frozenset[ids.DeviceName]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class Sources:
    """What the offer is made of.

    `look` reads the GPUs; raises DeviceFault. `ailing` says what is wrong with devices, `cordoned`
    which ones somebody took out of use, `refusing` which ones need a MIG mode that the GPU does not
    take, and `held` which ones claims of this node hold; raises NodeFault.
    """

    read_gpus: ReadGpus
    rules: offerings.NodeOfferings = field(default_factory=offerings.NodeOfferings)
    health_taints: Callable[[model.Inventory], slice_builder.Taints] = _no_taints
    held_devices: Callable[[], frozenset[ids.DeviceName]] = _no_devices
    cordon_taints: Callable[[model.Inventory], slice_builder.Taints] = _no_taints
    mode_taints: Callable[[model.Inventory], slice_builder.Taints] = _no_taints


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """For whom is offered. `plain`: without counters and shares, which the cluster lacks (D17).

    `shown`: whose the devices are, and whether they are under handover (D2). `shares`: whether
    shared faces may be published where kube-scheduler allocates (D18). `closed`: nothing is offered
    but what claims hold.
    """

    driver: str
    node: ids.NodeName
    allocator_state: handover.AllocatorState
    plain: bool = False
    shares: bool = False
    closed: bool = False


class PoolBuilder:
    """Used by one thread. A GPU driver that is absent is an empty pool, and looked for again."""

    def __init__(
        self, sources: Sources, rediscover_s: float, looking: backoff.Backoff, clock: clock.Clock
    ) -> None:
        self._sources = sources
        self._rediscover_s = rediscover_s
        self._read_backoff = looking
        self._clock = clock
        self._due_at = -math.inf
        self._inventory: model.Inventory | None = None
        self._problem: Problem | None = None
        self._last_pool: slice_builder.Pool | None = None

    def due_in_s(self) -> float:
        """Seconds until the GPUs should be looked at again."""
        return max(0.0, self._due_at - self._clock.monotonic())

    def last_published(self) -> tuple[slice_builder.Pool | None, tuple[model.Gpu, ...]]:
        """What was offered last, and the GPUs that are known; from any thread."""
        inventory = self._inventory
        return self._last_pool, inventory.known if inventory else ()

    def request_refresh(self) -> None:
        """Let the next `refresh` look, whenever the last one was."""
        self._due_at = -math.inf

    def refresh(self) -> None:
        """Look at the GPUs, if it is time."""
        now = self._clock.monotonic()
        if now < self._due_at:
            return
        try:
            self._inventory = self._sources.read_gpus()
        except errors.DeviceFault as e:
            if e.code in _DRIVER_ABSENT:
                self._inventory = model.Inventory()
            self._problem = Problem(reasons.Reason.DRIVER_NOT_READY, str(e))
            wait_s = self._read_backoff.after_failure()
            _log.warning("GPUs not readable", error=str(e), next_look_s=round(wait_s, 1))
        else:
            self._problem = _unreadable_problem(self._inventory)
            wait_s = (
                self._rediscover_s if self._problem is None else self._read_backoff.after_failure()
            )
            if self._problem is None:
                self._read_backoff.reset()
        self._due_at = now + wait_s

    def build(self, place: PublishOptions, stored: Iterable[fields.Raw]) -> PoolUpdate:
        """The pool of what was seen last; what claims hold is as it was published, or `stored`."""
        if self._inventory is None:
            return PoolUpdate(None, self._problems())
        wanted, refused = slice_builder.pool_of(
            self._inventory, self._terms(place), self._taints(self._inventory)
        )
        if place.closed:
            wanted, refused = replace(wanted, groups=()), ()
        problems = tuple(Problem(reasons.Reason.SLICES_INVALID, str(one)) for one in refused)
        try:
            pool = self._retain_held(wanted, place, stored)
        except errors.RationError as e:
            trouble = Problem(reasons.Reason.SLICES_INVALID, f"what claims hold is not known: {e}")
            return PoolUpdate(None, (*self._problems(), trouble))
        return PoolUpdate(
            handover.with_allocator(pool, place.allocator_state), (*self._problems(), *problems)
        )

    def _taints(self, inventory: model.Inventory) -> slice_builder.Taints:
        sources = (
            self._sources.health_taints,
            self._sources.cordon_taints,
            self._sources.mode_taints,
        )
        taints: dict[ids.DeviceName, tuple[slices.Taint, ...]] = {}
        for source in sources:
            for name, more in source(inventory).items():
                taints[name] = (*taints.get(name, ()), *more)
        return taints

    def _retain_held(
        self, wanted: slice_builder.Pool, place: PublishOptions, stored: Iterable[fields.Raw]
    ) -> slice_builder.Pool:
        holding = self._sources.held_devices()
        if holding:
            before = self._last_pool or in_use_devices.stored_pool(
                (slices.parse(one) for one in stored), place.driver, place.node
            )
            wanted = in_use_devices.retain_in_use(wanted, before, holding)
        self._last_pool = wanted
        return wanted

    def _terms(self, place: PublishOptions) -> slice_builder.Terms:
        found = self._inventory.known if self._inventory else ()
        rules = self._sources.rules
        return slice_builder.Terms(
            place.driver,
            place.node,
            place.allocator_state.allocator,
            {gpu.uuid: _allowed_offering(rules.of(place.node, gpu), place) for gpu in found},
            place.plain,
        )

    def _problems(self) -> tuple[Problem, ...]:
        return () if self._problem is None else (self._problem,)


def _allowed_offering(offering: faces.Offering, place: PublishOptions) -> faces.Offering:
    """kube-scheduler knows no namespaces: it gets shares only where that was asked for (D18)."""
    if place.allocator_state.allocator == "controller" or place.shares:
        return offering
    return replace(offering, kinds=offering.kinds - faces.SHARED_KINDS)


def _unreadable_problem(inventory: model.Inventory) -> Problem | None:
    """GPUs that are counted and cannot be read: looked at again soon, and told of."""
    if not inventory.broken:
        return None
    text = "; ".join(f"{one.location}: {one.problem}" for one in inventory.broken)
    return Problem(reasons.Reason.GPU_UNREADABLE, text)

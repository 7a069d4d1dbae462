"""Builds this node's pool of devices from its GPUs, which are read periodically."""

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

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
CheckGpus = Callable[[frozenset[ids.GpuUuid]], model.Inventory]
"""Same, but only these GPUs' MIG may have changed."""
CHECK_S: Final = 2.0
"""Delay of a check, for more changes of MIG to come: a Prepare makes three."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of the node's devices, for its event."""

    reason: reasons.Reason
    message: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.message}"


@dataclass(frozen=True, slots=True)
class PoolUpdate:
    """Pool to publish, and problems. Without a pool, the published slices stay as they are."""

    pool: slice_builder.Pool | None
    problems: tuple[Problem, ...] = ()


def _no_taints(_inventory: model.Inventory) -> slice_builder.Taints:
    return {}


def _no_devices() -> frozenset[ids.DeviceName]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class Sources:
    """Inputs of the pool.

    `read_gpus` reads the GPUs; `check_gpus` reads those that may have changed, None: all are read;
    both raise DeviceFault. `health_taints`, `cordon_taints` and `mode_taints` (MIG mode that the
    GPU does not take) return taints by device; `held_devices` returns the devices that claims of
    this node hold; raises NodeFault.
    """

    read_gpus: ReadGpus
    rules: offerings.NodeOfferings = field(default_factory=offerings.NodeOfferings)
    health_taints: Callable[[model.Inventory], slice_builder.Taints] = _no_taints
    held_devices: Callable[[], frozenset[ids.DeviceName]] = _no_devices
    cordon_taints: Callable[[model.Inventory], slice_builder.Taints] = _no_taints
    mode_taints: Callable[[model.Inventory], slice_builder.Taints] = _no_taints
    check_gpus: CheckGpus | None = None


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """Options of the pool. `plain`: no counters and shares, if the cluster lacks them (D17).

    `allocator_state`: the allocator, and whether devices are in handover (D2). `shares`: publish
    shared faces under kube-scheduler too (D18). `closed`: publish only devices that claims hold.
    """

    driver: str
    node: ids.NodeName
    allocator_state: handover.AllocatorState
    plain: bool = False
    shares: bool = False
    closed: bool = False


@dataclass(frozen=True, slots=True)
class _BuiltPool:
    """A pool, what was refused of it, and what both were built from."""

    inventory: model.Inventory
    terms: slice_builder.PublishTerms
    taints: slice_builder.Taints
    pool: slice_builder.Pool
    refused: tuple[errors.BadInput, ...]

    def is_from(
        self,
        inventory: model.Inventory,
        terms: slice_builder.PublishTerms,
        taints: slice_builder.Taints,
    ) -> bool:
        """Return whether it would be built the same."""
        return self.inventory is inventory and (self.terms, self.taints) == (terms, taints)


@dataclass(frozen=True, slots=True)
class _AllocatedPool:
    """A pool and an allocator's state, and the pool as that allocator's."""

    pool: slice_builder.Pool
    state: handover.AllocatorState
    result: slice_builder.Pool


class PoolBuilder:
    """Used by one thread. An absent GPU driver is an empty pool, and retried."""

    def __init__(
        self,
        sources: Sources,
        rediscover_s: float,
        read_backoff: backoff.Backoff,
        clock: clock.Clock,
    ) -> None:
        self._sources = sources
        self._rediscover_s = rediscover_s
        self._read_backoff = read_backoff
        self._clock = clock
        self._due_at = -math.inf
        self._asking = threading.Lock()
        self._changed: set[ids.GpuUuid] = set()
        self._check_at = math.inf
        self._inventory: model.Inventory | None = None
        self._problem: Problem | None = None
        self._last_pool: slice_builder.Pool | None = None
        self._cached: _BuiltPool | None = None
        self._allocated: _AllocatedPool | None = None

    def due_in_s(self) -> float:
        """Return the seconds until the GPUs should be read again."""
        return max(0.0, min(self._due_at, self._check_at) - self._clock.monotonic())

    def last_published(self) -> tuple[slice_builder.Pool | None, tuple[model.Gpu, ...]]:
        """Return the pool built last, and the known GPUs; from any thread."""
        inventory = self._inventory
        return self._last_pool, inventory.all_gpus if inventory else ()

    def request_refresh(self) -> None:
        """Make the next `refresh` read the GPUs regardless of the interval."""
        self._due_at = -math.inf

    def request_check(self, gpu: ids.GpuUuid) -> bool:
        """Have a GPU's MIG read within `CHECK_S`; return whether no other waits. Any thread."""
        with self._asking:
            is_first = not self._changed
            self._changed.add(gpu)
            if is_first:
                self._check_at = self._clock.monotonic() + CHECK_S
        return is_first

    def refresh(self) -> None:
        """Read the GPUs, or those that may have changed, if due."""
        now, check = self._clock.monotonic(), self._sources.check_gpus
        is_due = now >= self._due_at or (check is None and now >= self._check_at)
        if not is_due and now < self._check_at:
            return
        with self._asking:
            changed = frozenset(self._changed)
            self._changed.clear()
            self._check_at = math.inf
        try:
            inventory = check(changed) if check and not is_due else self._sources.read_gpus()
        except errors.DeviceFault as e:
            if e.code in _DRIVER_ABSENT:
                self._inventory = model.Inventory()
            self._problem = Problem(reasons.Reason.DRIVER_NOT_READY, str(e))
            wait_s = self._read_backoff.after_failure()
            _log.warning("GPUs not readable", error=str(e), next_look_s=round(wait_s, 1))
            self._due_at = now + wait_s
            return
        self._inventory = inventory
        self._problem = _unreadable_problem(inventory)
        if self._problem is not None:
            self._due_at = now + self._read_backoff.after_failure()
            return
        self._read_backoff.reset()
        if is_due:
            self._due_at = now + self._rediscover_s

    def build(self, options: PublishOptions, stored: Iterable[fields.Raw]) -> PoolUpdate:
        """Build the pool from the last read; devices in use stay as published, or as `stored`."""
        if self._inventory is None:
            return PoolUpdate(None, self._problems())
        desired, refused = self._build_pool(
            self._inventory, self._terms(options), self._taints(self._inventory)
        )
        if options.closed:
            desired, refused = replace(desired, groups=()), ()
        problems = tuple(
            Problem(reasons.Reason.SLICES_INVALID, str(problem)) for problem in refused
        )
        try:
            pool = self._retain_held(desired, options, stored)
        except errors.RationError as e:
            unknown = Problem(reasons.Reason.SLICES_INVALID, f"what claims hold is not known: {e}")
            return PoolUpdate(None, (*self._problems(), unknown))
        state = options.allocator_state
        allocated = self._allocated
        if allocated is None or allocated.pool is not pool or allocated.state != state:
            result = handover.with_allocator(pool, state)
            allocated = self._allocated = _AllocatedPool(pool, state, result)
        return PoolUpdate(allocated.result, (*self._problems(), *problems))

    def _build_pool(
        self,
        inventory: model.Inventory,
        terms: slice_builder.PublishTerms,
        taints: slice_builder.Taints,
    ) -> tuple[slice_builder.Pool, tuple[errors.BadInput, ...]]:
        """Return the pool and what is refused of it; built anew only for other GPUs or terms."""
        cached = self._cached
        if cached is None or not cached.is_from(inventory, terms, taints):
            pool, refused = slice_builder.build_pool(inventory, terms, taints)
            cached = self._cached = _BuiltPool(inventory, terms, taints, pool, refused)
        return cached.pool, cached.refused

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
        self, desired: slice_builder.Pool, options: PublishOptions, stored: Iterable[fields.Raw]
    ) -> slice_builder.Pool:
        held = self._sources.held_devices()
        if held:
            published = self._last_pool or in_use_devices.stored_pool(
                (slices.parse(slice_) for slice_ in stored), options.driver, options.node
            )
            desired = in_use_devices.retain_in_use(desired, published, held)
        self._last_pool = desired
        return desired

    def _terms(self, options: PublishOptions) -> slice_builder.PublishTerms:
        gpus = self._inventory.all_gpus if self._inventory else ()
        rules = self._sources.rules
        return slice_builder.PublishTerms(
            options.driver,
            options.node,
            options.allocator_state.allocator,
            {
                gpu.uuid: _allowed_offering(rules.gpu_offering(options.node, gpu), options)
                for gpu in gpus
            },
            options.plain,
        )

    def _problems(self) -> tuple[Problem, ...]:
        return () if self._problem is None else (self._problem,)


def _allowed_offering(offering: faces.Offering, options: PublishOptions) -> faces.Offering:
    """Remove shares unless allowed: kube-scheduler knows no namespaces (D18)."""
    if options.allocator_state.allocator == "controller" or options.shares:
        return offering
    return replace(offering, kinds=offering.kinds - faces.SHARED_KINDS)


def _unreadable_problem(inventory: model.Inventory) -> Problem | None:
    """Return the problem of GPUs that cannot be read, which are retried soon."""
    if not inventory.broken:
        return None
    text = "; ".join(f"{gpu.location}: {gpu.problem}" for gpu in inventory.broken)
    return Problem(reasons.Reason.GPU_UNREADABLE, text)

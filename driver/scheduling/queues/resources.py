"""Amounts of the fleet: usage, requests and capacity. Pure.

GPUs are counted in thousandths: a share or a MIG device is its part of the scarcest capacity of its
GPU.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple, Self

from driver import ids, names
from driver.resources import quantities
from driver.resources.dra import attributes, capacities, claims, pools, slices
from driver.resources.dra import requests as dra_requests
from driver.scheduling.allocator import requests as wants
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity, pool_layout, vocabulary
from driver.scheduling.allocator.policies import base
from driver.scheduling.snapshot import snapshot

FULL = base.FULL
"""A whole GPU."""
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Amounts:
    """`gpus` in thousandths of one, `memory` in bytes, `compute` in percent of one GPU.

    `models` are thousandths of GPUs by `productName`, `devices` those of other devices by driver.
    """

    gpus: int = 0
    memory: int = 0
    compute: int = 0
    models: Mapping[str, int] = field(default_factory=dict)
    devices: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Self) -> "Amounts":
        return Amounts(
            self.gpus + other.gpus,
            self.memory + other.memory,
            self.compute + other.compute,
            _merge(self.models, other.models, 1),
            _merge(self.devices, other.devices, 1),
        )

    def __sub__(self, other: Self) -> "Amounts":
        return Amounts(
            self.gpus - other.gpus,
            self.memory - other.memory,
            self.compute - other.compute,
            _merge(self.models, other.models, -1),
            _merge(self.devices, other.devices, -1),
        )

    def __bool__(self) -> bool:
        return self != ZERO

    def __hash__(self) -> int:
        by_kind = frozenset(self.models.items()), frozenset(self.devices.items())
        return hash((self.gpus, self.memory, self.compute, by_kind))

    def times(self, count: int) -> "Amounts":
        """Return a multiple."""
        models, devices = (
            {name: count * amount for name, amount in by_kind.items() if count}
            for by_kind in (self.models, self.devices)
        )
        return Amounts(
            count * self.gpus, count * self.memory, count * self.compute, models, devices
        )

    def fits(self, other: Self) -> bool:
        """Return whether no amount exceeds the other's."""
        if self.gpus > other.gpus or self.memory > other.memory or self.compute > other.compute:
            return False
        pairs = ((self.models, other.models), (self.devices, other.devices))
        return all(
            amount <= most.get(name, 0)
            for by_kind, most in pairs
            for name, amount in by_kind.items()
        )

    def dominant(self, capacity: "Amounts") -> Fraction:
        """Return the largest part of the capacity's GPUs, memory or compute, exactly.

        Resources without capacity do not count.
        """
        return max(
            (Fraction(part, whole) for part, whole in self._pairs(capacity)), default=_ZERO_SHARE
        )

    def share(self, capacity: "Amounts") -> float:
        """Return `dominant`, rounded to a float."""
        return max((part / whole for part, whole in self._pairs(capacity)), default=0.0)

    def _pairs(self, capacity: "Amounts") -> Iterator[tuple[int, int]]:
        if capacity.gpus:
            yield self.gpus, capacity.gpus
        if capacity.memory:
            yield self.memory, capacity.memory
        if capacity.compute:
            yield self.compute, capacity.compute


_ZERO_SHARE = Fraction(0)
ZERO = Amounts()


def _merge(left: Mapping[str, int], right: Mapping[str, int], sign: int) -> Mapping[str, int]:
    if not right:
        return left
    total_by_name = dict(left)
    for name, amount in right.items():
        total = total_by_name.get(name, 0) + sign * amount
        if total:
            total_by_name[name] = total
        else:
            total_by_name.pop(name, None)
    return total_by_name


def sum_amounts(amounts: Iterable[Amounts]) -> Amounts:
    """Return the sum."""
    return sum(amounts, ZERO)


def results_amounts(view: snapshot.Snapshot, results: Iterable[claims.Result]) -> Amounts:
    """Return the usage of allocated devices, without administrative access and other drivers."""
    return sum_amounts(
        result_amounts(view, result) for result in results if not result.admin_access
    )


def result_amounts(view: snapshot.Snapshot, result: claims.Result) -> Amounts:
    """Return the usage of one allocated device."""
    driver, name, device = result.device
    pool = view.pools.get((driver, name))
    if pool is None or driver not in view.managed_drivers:
        return ZERO
    layout = pool_layout.get_layout(pool)
    face = layout.faces.get(device)
    if face is None:
        return ZERO
    amounts = face_amounts(face, layout.idle_gpus[face.gpu].model, result.consumed)
    return _managed_amounts(view, driver, amounts)


def _managed_amounts(view: snapshot.Snapshot, driver: str, amounts: Amounts) -> Amounts:
    """Return the usage of a device; of one that is no GPU as devices of its driver."""
    if vocabulary.is_gpu_driver(view, driver):
        return amounts
    return Amounts(devices={driver: amounts.gpus})


def face_amounts(
    face: pool_layout.Face, model: base.GpuModel, consumed: Mapping[str, quantities.Quantity]
) -> Amounts:
    """Return the usage of a device of a GPU model: a share's amounts, MIG slices or memory."""
    if face.mode in base.SHARED_MODES:
        taken = node_capacity.device_usage(face, consumed, gpu=0)
        gpus, memory = taken.thousandths, taken.memory
        named = consumed.get(names.CAP_COMPUTE)
        compute = _percent(gpus) if named is None else named.units
    else:
        gpus, memory = _gpu_part(face, model), face.memory
        compute = _compute(face, gpus)
    return Amounts(gpus, memory, compute, {model.product: gpus} if model.product else {})


def _gpu_part(face: pool_layout.Face, model: base.GpuModel) -> int:
    if face.mode != base.MIG:
        return FULL
    if model.all_slices:
        return FULL * face.mask.bit_count() // model.all_slices.bit_count()
    return FULL * face.memory // max(model.memory, 1)


def _compute(face: pool_layout.Face, gpus: int) -> int:
    attribute = face.device.capacity.get(names.CAP_COMPUTE)
    return _percent(gpus) if attribute is None else attribute.value.units


def _percent(thousandths: int) -> int:
    return thousandths * _PERCENT // FULL


def capacity(view: snapshot.Snapshot) -> Amounts:
    """Return all that managed drivers publish, whatever its state."""
    return sum_amounts(
        _managed_amounts(view, pool.driver, pool.cached(_pool_capacity))
        for pool in view.pools.values()
        if pool.driver in view.managed_drivers
    )


def _pool_capacity(pool: pools.Pool) -> Amounts:
    layout = pool_layout.get_layout(pool)
    whole_gpus = {face.gpu for face in layout.faces.values() if face.mode == base.WHOLE}
    return sum_amounts(
        Amounts(
            FULL,
            gpu.model.memory if index in whole_gpus else _gpu_memory(gpu.model),
            _PERCENT,
            {gpu.model.product: FULL} if gpu.model.product else {},
        )
        for index, gpu in enumerate(layout.idle_gpus)
    )


def _gpu_memory(model: base.GpuModel) -> int:
    """Return the memory of a GPU; if it is published in parts alone, that of all its slices."""
    slices = model.all_slices.bit_count()
    parts = (
        placement.memory * slices // placement.mask.bit_count()
        for placement in model.placements
        if placement.mask
    )
    return max([model.memory, *parts])


def products(view: snapshot.Snapshot, node: ids.NodeName) -> frozenset[str]:
    """Return the models of a node's GPUs."""
    return frozenset(
        gpu.model.product
        for share in view.reachable_pools(node)
        if vocabulary.is_gpu_pool(view, share.pool)
        for gpu in pool_layout.get_layout(share.pool).idle_gpus
    )


def requested_amounts(view: snapshot.Snapshot, all_claims: Iterable[claims.Claim]) -> Amounts:
    """Return what unallocated claims request, as far as known before placement.

    Per request the minimum: the smallest kind of device that it matches, of a shared one the
    capacity that it names. `All` counts as one device. A request that matches no device of ours
    counts nothing.
    """
    kinds: dict[_DeviceKind, pool_layout.Face] = {}
    for pool in view.pools.values():
        if pool.driver in view.managed_drivers:
            kinds |= pool.cached(_device_kinds)
    return sum_amounts(
        _minimum_request(view, claim, request, kinds)
        for claim in all_claims
        for request in claim.spec.requests
    )


class _DeviceKind(NamedTuple):
    """Devices that differ by where they are alone."""

    driver: str
    mode: str
    profile: str
    memory: int
    model: base.GpuModel


_DeviceKinds = Mapping[_DeviceKind, pool_layout.Face]
"""One device of each kind."""


def _device_kinds(pool: pools.Pool) -> _DeviceKinds:
    layout, profile_name = pool_layout.get_layout(pool), vocabulary.vocabulary(pool).profile
    kinds: dict[_DeviceKind, pool_layout.Face] = {}
    for face in layout.faces.values():
        profile = attributes.find_attribute(
            face.device.attributes, pool.driver, f"{pool.driver}/{profile_name}"
        )
        model = layout.idle_gpus[face.gpu].model
        kind = _DeviceKind(pool.driver, face.mode, str(profile or ""), face.memory, model)
        kinds.setdefault(kind, face)
    return kinds


def _minimum_request(
    view: snapshot.Snapshot, claim: claims.Claim, request: dra_requests.Request, kinds: _DeviceKinds
) -> Amounts:
    """Return the minimum of a request's alternatives."""
    alternatives = [
        _minimum_subrequest(view, claim, subrequest, kinds)
        for subrequest in request.alternatives_or_self
    ]
    return min(
        (least for least in alternatives if least is not None), key=_amounts_key, default=ZERO
    )


def _minimum_subrequest(
    view: snapshot.Snapshot,
    claim: claims.Claim,
    subrequest: dra_requests.Request,
    kinds: _DeviceKinds,
) -> Amounts | None:
    """Return the minimum of a subrequest; None if no device of ours matches."""
    if subrequest.admin_access:
        return ZERO
    resolved = wants.resolve_subrequest(view, claim, subrequest)
    if isinstance(resolved, allocator_types.Unschedulable):
        return None
    fitting = [
        _managed_amounts(view, kind.driver, face_amounts(face, kind.model, taken))
        for kind, face in kinds.items()
        if resolved.matches(kind.driver, face.device) is True
        and (taken := _consumption(face.device, subrequest)) is not None
    ]
    least = min(fitting, key=_amounts_key, default=None)
    if least is None:
        return None
    if len({frozenset(amounts.models) for amounts in fitting}) > 1:
        least = replace(least, models={})
    if len({frozenset(amounts.devices) for amounts in fitting}) > 1:
        least = replace(least, devices={})
    return least.times(1 if subrequest.all_devices else subrequest.count)


def _amounts_key(amounts: Amounts) -> tuple[int, int, int]:
    return amounts.gpus, amounts.memory, amounts.compute


def _consumption(
    device: slices.Device, subrequest: dra_requests.Request
) -> Mapping[str, quantities.Quantity] | None:
    """Return a request's consumption of each capacity; None if it exceeds the device (KEP-5075)."""
    consumption: dict[str, quantities.Quantity] = {}
    if any(name not in device.capacity for name in subrequest.minimums):
        return None
    for name, available in device.capacity.items():
        amount = capacities.consumed_capacity(available, subrequest.minimums.get(name))
        if amount is None or amount > available.value:
            return None
        consumption[name] = amount
    return consumption

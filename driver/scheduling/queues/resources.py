"""How much of the fleet something takes or asks, and how much there is. Pure.

GPUs are counted in thousandths: a share or a MIG device is the part that it takes of what is
scarcest of its GPU.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, Self

from driver import ids, names
from driver.resources import quantities
from driver.resources.dra import attributes, capacities, claims, pools, slices
from driver.resources.dra import requests as dra_requests
from driver.scheduling.allocator import requests as wants
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity, pool_layout
from driver.scheduling.allocator.policies import base
from driver.scheduling.snapshot import snapshot

FULL = base.FULL
"""A whole GPU."""
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Amounts:
    """`gpus` in thousandths of one, `memory` in bytes, `compute` in percent of one GPU.

    `models` are thousandths of GPUs by `productName`.
    """

    gpus: int = 0
    memory: int = 0
    compute: int = 0
    models: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Self) -> "Amounts":
        return Amounts(
            self.gpus + other.gpus,
            self.memory + other.memory,
            self.compute + other.compute,
            _merge(self.models, other.models, 1),
        )

    def __sub__(self, other: Self) -> "Amounts":
        return Amounts(
            self.gpus - other.gpus,
            self.memory - other.memory,
            self.compute - other.compute,
            _merge(self.models, other.models, -1),
        )

    def __bool__(self) -> bool:
        return self != ZERO

    def __hash__(self) -> int:
        return hash((self.gpus, self.memory, self.compute, frozenset(self.models.items())))

    def times(self, count: int) -> "Amounts":
        """So many of it."""
        models = {name: count * amount for name, amount in self.models.items() if count}
        return Amounts(count * self.gpus, count * self.memory, count * self.compute, models)

    def fits(self, other: Self) -> bool:
        """Whether it is no more than the other in anything."""
        if self.gpus > other.gpus or self.memory > other.memory or self.compute > other.compute:
            return False
        return all(of <= other.models.get(name, 0) for name, of in self.models.items())

    def dominant(self, capacity: "Amounts") -> Fraction:
        """The largest part that it is of the GPUs, the memory or the compute there are, exactly.

        What there is none of does not count.
        """
        return max(
            (Fraction(mine, there) for mine, there in self._pairs(capacity)), default=_ZERO_SHARE
        )

    def share(self, capacity: "Amounts") -> float:
        """`dominant`, rounded to a float."""
        return max((mine / there for mine, there in self._pairs(capacity)), default=0.0)

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
    found = dict(left)
    for name, amount in right.items():
        total = found.get(name, 0) + sign * amount
        if total:
            found[name] = total
        else:
            found.pop(name, None)
    return found


def sum_amounts(found: Iterable[Amounts]) -> Amounts:
    """All of it together."""
    return sum(found, ZERO)


def results_amounts(view: snapshot.Snapshot, results: Iterable[claims.Result]) -> Amounts:
    """What allocated devices take. Administrators' access and other drivers' devices: nothing."""
    return sum_amounts(result_amounts(view, one) for one in results if not one.admin_access)


def result_amounts(view: snapshot.Snapshot, result: claims.Result) -> Amounts:
    """What one of them takes, whoever has it."""
    driver, name, device = result.device
    of = view.pools.get((driver, name))
    if of is None or driver != view.driver:
        return ZERO
    found = pool_layout.get_layout(of)
    face = found.faces.get(device)
    return (
        ZERO
        if face is None
        else face_amounts(face, found.idle_gpus[face.gpu].model, result.consumed)
    )


def face_amounts(
    face: pool_layout.Face, model: base.GpuModel, consumed: Mapping[str, quantities.Quantity]
) -> Amounts:
    """A device of a GPU of a model, of a shared one so much: of MIG the slices or the memory."""
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
    there = face.device.capacity.get(names.CAP_COMPUTE)
    return _percent(gpus) if there is None else there.value.units


def _percent(thousandths: int) -> int:
    return thousandths * _PERCENT // FULL


def capacity(view: snapshot.Snapshot) -> Amounts:
    """All that our driver publishes, whatever its state."""
    return sum_amounts(
        of.cached(_pool_capacity) for of in view.pools.values() if of.driver == view.driver
    )


def _pool_capacity(of: pools.Pool) -> Amounts:
    found = pool_layout.get_layout(of)
    whole = {face.gpu for face in found.faces.values() if face.mode == base.WHOLE}
    return sum_amounts(
        Amounts(
            FULL,
            card.model.memory if place in whole else _gpu_memory(card.model),
            _PERCENT,
            {card.model.product: FULL} if card.model.product else {},
        )
        for place, card in enumerate(found.idle_gpus)
    )


def _gpu_memory(model: base.GpuModel) -> int:
    """Of a GPU that is offered in parts alone: as much as its slices have together."""
    slices = model.all_slices.bit_count()
    parts = (one.memory * slices // one.mask.bit_count() for one in model.placements if one.mask)
    return max([model.memory, *parts])


def products(view: snapshot.Snapshot, node: ids.NodeName) -> frozenset[str]:
    """The models of a node's GPUs."""
    return frozenset(
        card.model.product
        for share in view.reachable_pools(node)
        if share.pool.driver == view.driver
        for card in pool_layout.get_layout(share.pool).idle_gpus
    )


def requested_amounts(view: snapshot.Snapshot, found: Iterable[claims.Claim]) -> Amounts:
    """What claims that have nothing yet ask, as far as that is known before they are placed.

    Of each request the least that would do: the smallest kind of device that it matches, of a
    shared one the capacity that it names. `All` counts as one device. What matches no device of
    ours asks nothing.
    """
    kinds: dict[_DeviceKind, pool_layout.Face] = {}
    for of in view.pools.values():
        if of.driver == view.driver:
            kinds |= of.cached(_device_kinds)
    return sum_amounts(
        _minimum_request(view, claim, one, kinds) for claim in found for one in claim.spec.requests
    )


class _DeviceKind(NamedTuple):
    """Devices that differ by where they are alone."""

    mode: str
    profile: str
    memory: int
    model: base.GpuModel


_DeviceKinds = Mapping[_DeviceKind, pool_layout.Face]
"""One device of each."""


def _device_kinds(of: pools.Pool) -> _DeviceKinds:
    found = pool_layout.get_layout(of)
    made: dict[_DeviceKind, pool_layout.Face] = {}
    for face in found.faces.values():
        said = attributes.find_attribute(
            face.device.attributes, of.driver, f"{of.driver}/{names.ATTR_PROFILE}"
        )
        model = found.idle_gpus[face.gpu].model
        made.setdefault(_DeviceKind(face.mode, str(said or ""), face.memory, model), face)
    return made


def _minimum_request(
    view: snapshot.Snapshot, claim: claims.Claim, one: dra_requests.Request, kinds: _DeviceKinds
) -> Amounts:
    """Of a request, or of the least of its alternatives."""
    found = [_minimum_subrequest(view, claim, way, kinds) for way in one.alternatives_or_self]
    return min((least for least in found if least is not None), key=_amounts_key, default=ZERO)


def _minimum_subrequest(
    view: snapshot.Snapshot, claim: claims.Claim, way: dra_requests.Request, kinds: _DeviceKinds
) -> Amounts | None:
    """None: no device of ours would do."""
    if way.admin_access:
        return ZERO
    made = wants.resolve_subrequest(view, claim, way)
    if isinstance(made, allocator_types.Unschedulable):
        return None
    fitting = [
        face_amounts(face, kind.model, taken)
        for kind, face in kinds.items()
        if made.matches(view.driver, face.device) is True
        and (taken := _consumption(face.device, way)) is not None
    ]
    least = min(fitting, key=_amounts_key, default=None)
    if least is None:
        return None
    if len({frozenset(one.models) for one in fitting}) > 1:
        least = Amounts(least.gpus, least.memory, least.compute)
    return least.times(1 if way.all_devices else way.count)


def _amounts_key(one: Amounts) -> tuple[int, int, int]:
    return one.gpus, one.memory, one.compute


def _consumption(
    device: slices.Device, way: dra_requests.Request
) -> Mapping[str, quantities.Quantity] | None:
    """What a request takes of each capacity of a device; None: more than there is (KEP-5075)."""
    found: dict[str, quantities.Quantity] = {}
    if any(name not in device.capacity for name in way.minimums):
        return None
    for name, there in device.capacity.items():
        amount = capacities.consumed_capacity(there, way.minimums.get(name))
        if amount is None or amount > there.value:
            return None
        found[name] = amount
    return found

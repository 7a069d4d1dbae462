"""Queues as the controller reads them: amounts as integers, durations in seconds (D7)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from driver import ids
from driver.api import crd, validation
from driver.api import queues as api
from driver.resources import fields, quantities

THOUSAND = 1000


@dataclass(frozen=True, slots=True)
class Amounts:
    """`gpus` in thousandths of one, `memory` in bytes, `compute` in percent; None: not named.

    `models` are thousandths of GPUs by `productName`, `devices` of other devices by driver.
    """

    gpus: int | None = None
    memory: int | None = None
    compute: int | None = None
    models: Mapping[str, int] = field(default_factory=dict)
    devices: Mapping[str, int] = field(default_factory=dict)

    def __hash__(self) -> int:
        by_kind = frozenset(self.models.items()), frozenset(self.devices.items())
        return hash((self.gpus, self.memory, self.compute, by_kind))


@dataclass(frozen=True, slots=True)
class Member:
    """Pods of a namespace ("": of any) that have all of `labels`."""

    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.namespace, frozenset(self.labels.items())))


@dataclass(frozen=True, slots=True)
class IdleReclaim:
    """Action on pods whose GPUs were idle for `after_s` seconds."""

    after_s: float
    action: api.IdleAction


@dataclass(frozen=True, slots=True)
class Usage:
    """Past use as it was written: GPU-seconds (of dominant share, in GPUs), decayed until `at`."""

    at: str
    gpu_seconds: float


@dataclass(frozen=True, slots=True)
class Queue:
    """A Queue (`api.QueueSpec`). `half_life_s` 0: past use does not count; `parent` "": none."""

    name: str
    uid: str = ""
    version: str = ""
    generation: int = 0
    parent: str = ""
    weight: int = 1
    deserved: Amounts = Amounts()
    limit: Amounts = Amounts()
    borrowing: bool = True
    members: tuple[Member, ...] = ()
    half_life_s: float = 0.0
    preemptible: bool = True
    reclaim: api.Reclaim = "LowerPriority"
    min_runtime_s: float = 0.0
    starvation_s: float = 3600.0
    idle: IdleReclaim | None = None
    usage: Usage | None = None
    created: str = ""
    status: fields.Raw = field(default_factory=dict, compare=False, hash=False)

    @property
    def key(self) -> ids.Key:
        """Its name."""
        return ids.Key(self.name)


def parse(obj: fields.Raw) -> Queue:
    """Read a Queue. Raises BadInput where it is not as its CRD wants it."""
    meta = fields.mapping(obj, "metadata")
    status = fields.mapping(obj, "status")
    name = fields.required_text(meta, "name", "metadata")
    spec = validation.read(api.QueueSpec, fields.mapping(obj, "spec"), "spec")
    idle = spec.idle_reclaim
    return Queue(
        name=name,
        uid=fields.text(meta, "uid", "metadata"),
        version=fields.text(meta, "resourceVersion", "metadata"),
        generation=fields.integer(meta, "generation", "metadata"),
        parent=spec.parent or "",
        weight=spec.weight,
        deserved=_amounts(spec.deserved),
        limit=_amounts(spec.limit),
        borrowing=spec.borrowing,
        members=tuple(Member(member.namespace, dict(member.labels)) for member in spec.members),
        half_life_s=crd.seconds(spec.half_life or ""),
        preemptible=spec.preemptible,
        reclaim=spec.reclaim,
        min_runtime_s=crd.seconds(spec.min_run_time or ""),
        starvation_s=crd.seconds(spec.starvation_bound),
        idle=IdleReclaim(crd.seconds(idle.after), idle.action) if idle else None,
        usage=_usage(status),
        created=fields.text(meta, "creationTimestamp", "metadata"),
        status=status,
    )


def _amounts(amounts: api.Amounts) -> Amounts:
    return Amounts(
        gpus=None if amounts.gpus is None else _thousandths(amounts.gpus),
        memory=None if amounts.memory is None else quantities.parse(amounts.memory, "memory").units,
        compute=amounts.compute,
        models={model.product: _thousandths(model.gpus) for model in amounts.models},
        devices={device.driver: _thousandths(device.count) for device in amounts.devices},
    )


def _thousandths(gpus: str) -> int:
    return quantities.parse(gpus, "gpus").millis


def _usage(status: fields.Raw) -> Usage | None:
    result = fields.mapping(status, "usage", "status")
    path = fields.text(result, "at", "status.usage")
    text = fields.text(result, "gpuSeconds", "status.usage")
    return (
        Usage(path, quantities.parse(text, "status.usage.gpuSeconds").millis / THOUSAND)
        if path
        else None
    )

"""What is wrong with the node's GPUs: events and polls in, ailments out. Pure.

An ailment is one thing wrong, as a device taint says it. Everything is kept for each GPU apart, so
one GPU's trouble is never another's. What clears:

- an Xid's ailment, when the GPU was made anew since: its recovery action (field 230) is NONE again
  after it was not, or it can be reached again after it could not, or its energy counter fell (it
  only grows while the driver holds the GPU). Never while the recovery action is another than NONE.
  A driver without field 230 leaves the last two, and one without the counter (before Volta, vGPU)
  only that the GPU was away; a restart of this process forgets Xids too.
- one of an Xid of class reset, too, when CALM_POLLS in a row since the last such Xid found the
  recovery action NONE: the driver, which knows more than the number, asks for nothing.
- that a call hangs, when it has returned. Such a GPU was not made anew by that.
- everything else, when the next poll no longer finds it.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, assert_never

from driver import ids, names
from driver.devices import xids

Effect = Literal["NoSchedule", "NoExecute", "None"]
CALM_POLLS = 6
"""Polls in a row that are believed over an Xid: half a minute by default."""
XIDS_SHOWN = 3
"""Ailments by Xid of a GPU, and of each instance: a device takes few taints (16 in all)."""


class RecoveryAction(IntEnum):
    """What a GPU asks for (nvml.h, NVML_GPU_RECOVERY_ACTION_*)."""

    NONE = 0
    GPU_RESET = 1
    NODE_REBOOT = 2
    DRAIN_P2P = 3
    DRAIN_AND_RESET = 4
    RECOVER_IMEX_DOMAIN = 5
    BUS_RESET = 6
    SYSTEM_REBOOT = 7


_NODE_ACTIONS = {RecoveryAction.NODE_REBOOT, RecoveryAction.SYSTEM_REBOOT}


@dataclass(frozen=True, slots=True, order=True)
class Instance:
    """A MIG instance by NVML's ids; without a compute instance, all of the GPU instance."""

    gpu_instance: int
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True)
class Ailment:
    """One thing wrong with a GPU, or with one MIG instance of it, as a taint says it.

    `value` is a label's value, `message` says what it is and what clears it.
    """

    key: str
    value: str
    effect: Effect
    message: str
    instance: Instance | None = None


@dataclass(frozen=True, slots=True)
class XidEvent:
    """The driver reported an Xid."""

    gpu: ids.GpuUuid
    code: int
    instance: Instance | None = None


@dataclass(frozen=True, slots=True)
class PollResult:
    """What a poll of one GPU says. With a `problem` it could not be reached: nothing else counts.

    `hung` is the call that has not returned, "" when all have: then nothing else counts either.
    `recovery` is field 230, None where the driver has none. `repair_*` is of bad memory: rows
    remapped, or pages retired before Ampere. `energy_mj` is what it used since the driver took it.
    """

    problem: str = ""
    hung: str = ""
    recovery: int | None = None
    repair_pending: bool = False
    repair_failed: bool = False
    sram_exceeded: bool = False
    unrepairable: bool = False
    energy_mj: int | None = None

    @property
    def recovery_action(self) -> RecoveryAction | int:
        """The recovery action; NONE where the driver tells none."""
        number = self.recovery or 0
        return RecoveryAction(number) if number in set(RecoveryAction) else number


@dataclass(frozen=True, slots=True)
class Polled:
    """A GPU was polled."""

    gpu: ids.GpuUuid
    result: PollResult


@dataclass(frozen=True, slots=True)
class Watched:
    """A GPU's events were asked for; with a `problem`, in vain."""

    gpu: ids.GpuUuid
    problem: str = ""


Observation = XidEvent | Polled | Watched


@dataclass(frozen=True, slots=True)
class Policy:
    """How Xids are classed, and whether what takes a node or a GPU down evicts (NoExecute)."""

    table: Mapping[int, xids.Xid] = dataclasses.field(default_factory=lambda: xids.TABLE)
    evict: bool = False

    def effect(self, xid_class: xids.XidClass) -> Effect:
        """What a fault of that class does to scheduling."""
        match xid_class:
            case xids.XidClass.APPLICATION | xids.XidClass.INFORMATIONAL:
                return "None"
            case xids.XidClass.RESET:
                return "NoSchedule"
            case xids.XidClass.NODE | xids.XidClass.HARDWARE:
                return "NoExecute" if self.evict else "NoSchedule"
            case _:
                assert_never(xid_class)


@dataclass(frozen=True, slots=True)
class GpuHealth:
    """What is known of one GPU: Xids not recovered from, its last signs, what cannot be had.

    `calm` counts the polls since the last fault that found it asking for nothing.
    """

    faults: frozenset[tuple[int, Instance | None]] = frozenset()
    last_poll: PollResult = PollResult()
    calm_polls: int = 0
    hung: str = ""
    lost: str = ""
    unwatched: str = ""


NodeHealth = Mapping[ids.GpuUuid, GpuHealth]


def fold(health: NodeHealth, observed: Observation, policy: Policy) -> NodeHealth:
    """The health after one more observation; only its own GPU's changes."""
    before = health.get(observed.gpu, GpuHealth())
    match observed:
        case XidEvent():
            after = _after_xid(before, observed, policy)
        case Polled(result=signs):
            after = _after_poll(before, signs, policy)
        case Watched(problem=problem):
            after = dataclasses.replace(before, unwatched=problem)
        case _:
            assert_never(observed)
    return {**health, observed.gpu: after}


def ailments(of: GpuHealth, policy: Policy) -> tuple[Ailment, ...]:
    """What is wrong with a GPU, in a stable order."""
    found = [
        *_hung_ailments(of, policy),
        *_lost_ailments(of, policy),
        *_xid_ailments(of, policy),
        *_recovery_ailments(of.last_poll, policy),
    ]
    found += _memory_ailments(of.last_poll, policy)
    if of.unwatched and not of.lost and not of.hung:
        text = f"its events cannot be had ({of.unwatched}); it is polled, and asked again each time"
        found.append(Ailment(names.TAINT_UNMONITORED, "events", "None", text))
    return tuple(found)


def with_unread_gpus(
    found: Mapping[ids.GpuUuid, Sequence[Ailment]], unread: Iterable[ids.GpuUuid]
) -> Mapping[ids.GpuUuid, Sequence[Ailment]]:
    """What ails GPUs, with those that could not be read although no poll has said so yet."""
    text = "it could not be read when the GPUs were last read; cleared when it is"
    waits = (Ailment(names.TAINT_LOST, "unread", "NoSchedule", text),)
    return {**found, **{gpu: waits for gpu in unread if not found.get(gpu)}}


def instance_ailments(found: Iterable[Ailment], instance: Instance) -> tuple[Ailment, ...]:
    """Those that concern a MIG device: the whole GPU's, its GPU instance's and its own."""
    whole = Instance(instance.gpu_instance)
    return tuple(one for one in found if one.instance in {None, whole, instance})


def is_healthy(found: Iterable[Ailment]) -> bool | None:
    """Whether a device with these is healthy; None: it cannot be told.

    One in quarantine is as healthy as it is without.
    """
    effects = {one.effect for one in found if one.key != names.TAINT_QUARANTINE}
    return False if effects - {"None"} else None if effects else True


def _after_xid(before: GpuHealth, event: XidEvent, policy: Policy) -> GpuHealth:
    row = xids.lookup(policy.table, event.code)
    if policy.effect(row.xid_class) == "None":
        return before
    # A fall of the counter from before this Xid to after it says nothing about this Xid.
    signs = dataclasses.replace(before.last_poll, energy_mj=None)
    faults = before.faults | {(event.code, event.instance)}
    return dataclasses.replace(before, faults=faults, last_poll=signs, calm_polls=0)


def _after_poll(before: GpuHealth, signs: PollResult, policy: Policy) -> GpuHealth:
    if signs.hung:
        return dataclasses.replace(before, hung=signs.hung, calm_polls=0)
    if signs.problem:
        return dataclasses.replace(before, lost=signs.problem, hung="", calm_polls=0)
    if _is_reset(before, signs):
        return dataclasses.replace(before, faults=frozenset(), last_poll=signs, lost="", hung="")
    faults, calm = before.faults, 0
    if faults and signs.recovery == RecoveryAction.NONE:
        calm = before.calm_polls + 1
        if calm >= CALM_POLLS:
            faults, calm = frozenset(f for f in faults if not _is_disproved(f, policy)), 0
    return dataclasses.replace(
        before, faults=faults, last_poll=signs, calm_polls=calm, lost="", hung=""
    )


def _is_disproved(fault: tuple[int, Instance | None], policy: Policy) -> bool:
    """Whether a GPU that asks for nothing has recovered from it: whatever a reset would cure."""
    return xids.lookup(policy.table, fault[0]).xid_class is xids.XidClass.RESET


def _is_reset(before: GpuHealth, signs: PollResult) -> bool:
    """Whether the GPU was reset, or left and came back, and asks for nothing now."""
    if signs.recovery_action != RecoveryAction.NONE:
        return False
    if before.lost or before.last_poll.recovery_action != RecoveryAction.NONE:
        return True
    then, now = before.last_poll.energy_mj, signs.energy_mj
    return then is not None and now is not None and now < then


def _lost_ailments(of: GpuHealth, policy: Policy) -> Iterable[Ailment]:
    if of.lost and not of.hung:
        text = f"NVML cannot reach it ({of.lost}); cleared when it can again"
        yield Ailment(names.TAINT_LOST, "lost", policy.effect(xids.XidClass.NODE), text)


def _hung_ailments(of: GpuHealth, policy: Policy) -> Iterable[Ailment]:
    """A hang may pass by itself: nobody is evicted for it."""
    if of.hung:
        text = f"NVML cannot reach it: {of.hung} does not return; cleared when it has"
        yield Ailment(names.TAINT_LOST, "hung", policy.effect(xids.XidClass.RESET), text)


def _xid_ailments(of: GpuHealth, policy: Policy) -> Iterable[Ailment]:
    """Of each subject the gravest, by effect and then by code."""
    shown: dict[Instance | None, int] = {}
    for code, instance in sorted(of.faults, key=lambda fault: _severity(fault, policy)):
        row = xids.lookup(policy.table, code)
        shown[instance] = shown.get(instance, 0) + 1
        if shown[instance] <= XIDS_SHOWN:
            text = f"Xid {code}: {row.meaning}; cleared by a reset of the GPU"
            if row.xid_class is xids.XidClass.RESET:
                text += ", or when it goes on asking for nothing (field 230)"
            effect = policy.effect(row.xid_class)
            yield Ailment(names.TAINT_XID, str(code), effect, text, instance)


def _severity(fault: tuple[int, Instance | None], policy: Policy) -> tuple[bool, int, int, int]:
    code, instance = fault
    stays = policy.effect(xids.lookup(policy.table, code).xid_class) == "NoSchedule"
    return (stays, code, *_instance_key(instance))


def _instance_key(instance: Instance | None) -> tuple[int, int]:
    if instance is None:
        return (-1, -1)
    compute = instance.compute_instance
    return (instance.gpu_instance, -1 if compute is None else compute)


def _recovery_ailments(signs: PollResult, policy: Policy) -> Iterable[Ailment]:
    action = signs.recovery_action
    if action != RecoveryAction.NONE:
        name = action.name if isinstance(action, RecoveryAction) else f"ACTION_{action}"
        grave = xids.XidClass.NODE if action in _NODE_ACTIONS else xids.XidClass.RESET
        text = f"the GPU asks for {name} (field 230); cleared when it asks for nothing"
        yield Ailment(names.TAINT_RECOVERY, name, policy.effect(grave), text)


def _memory_ailments(signs: PollResult, policy: Policy) -> Iterable[Ailment]:
    reset, broken = (policy.effect(one) for one in (xids.XidClass.RESET, xids.XidClass.HARDWARE))
    if signs.repair_pending:
        text = "bad memory waits for its repair; cleared by a reset of the GPU"
        yield Ailment(names.TAINT_ROW_REMAP, "pending", reset, text)
    if signs.repair_failed:
        text = "bad memory could not be repaired; the GPU wants replacing"
        yield Ailment(names.TAINT_ROW_REMAP, "failed", broken, text)
    if signs.sram_exceeded:
        text = "too many errors of on-chip memory; the GPU wants replacing"
        yield Ailment(names.TAINT_ECC, "sram-threshold", broken, text)
    if signs.unrepairable:
        text = "memory is beyond repair; the GPU wants replacing"
        yield Ailment(names.TAINT_ECC, "unrepairable", broken, text)

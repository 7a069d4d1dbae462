"""Health of the node's GPUs: events and polls in, ailments out. Pure.

An ailment is one fault, as a device taint describes it. State is kept per GPU, so that one GPU's
faults never affect another. Clearing:

- an Xid's ailment, when the GPU was reset since: its recovery action (field 230) is NONE again
  after it was not, or it can be reached again after it could not, or its energy counter fell (it
  only grows while the driver holds the GPU). Never while the recovery action is other than NONE.
  A driver without field 230 leaves the last two, and one without the counter (before Volta, vGPU)
  only that the GPU was away; a restart of this process forgets Xids too.
- an Xid of class reset also when CALM_POLLS consecutive polls since the last such Xid found the
  recovery action NONE: the driver, which knows more than the number, asks for nothing.
- a hung call, when it has returned. The GPU was not reset by that.
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
    """Recovery action of a GPU (nvml.h, NVML_GPU_RECOVERY_ACTION_*)."""

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
    """A MIG instance by NVML's ids; without a compute instance, the whole GPU instance."""

    gpu_instance: int
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True)
class Ailment:
    """One fault of a GPU, or of one MIG instance of it, as a taint describes it.

    `value` is a label's value, `message` says what it is and what clears it.
    """

    key: str
    value: str
    effect: Effect
    message: str
    instance: Instance | None = None


@dataclass(frozen=True, slots=True)
class XidEvent:
    """An Xid reported by the driver."""

    gpu: ids.GpuUuid
    code: int
    instance: Instance | None = None


@dataclass(frozen=True, slots=True)
class PollResult:
    """Result of polling one GPU. With a `problem` it could not be reached: nothing else counts.

    `hung` is the call that has not returned, "" if all have: then nothing else counts either.
    `recovery` is field 230, None if the driver lacks it. `repair_*` concerns bad memory: rows
    remapped, or pages retired before Ampere. `energy_mj` is the energy used since the driver took
    the GPU.
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
        """Return the recovery action; NONE if the driver reports none."""
        number = self.recovery or 0
        return RecoveryAction(number) if number in set(RecoveryAction) else number


@dataclass(frozen=True, slots=True)
class Polled:
    """A GPU was polled."""

    gpu: ids.GpuUuid
    result: PollResult


@dataclass(frozen=True, slots=True)
class Watched:
    """Registration of a GPU's events; with a `problem`, it failed."""

    gpu: ids.GpuUuid
    problem: str = ""


Observation = XidEvent | Polled | Watched


@dataclass(frozen=True, slots=True)
class Policy:
    """Classes of Xids, and whether faults of a node or GPU evict pods (NoExecute)."""

    table: Mapping[int, xids.Xid] = dataclasses.field(default_factory=lambda: xids.TABLE)
    evict: bool = False

    def effect(self, xid_class: xids.XidClass) -> Effect:
        """Return the taint effect of a fault of that class."""
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
    """State of one GPU: Xids not recovered from, its last poll, failures to reach or watch it.

    `calm_polls` counts the polls since the last fault that found no recovery action.
    """

    faults: frozenset[tuple[int, Instance | None]] = frozenset()
    last_poll: PollResult = PollResult()
    calm_polls: int = 0
    hung: str = ""
    lost: str = ""
    unwatched: str = ""


NodeHealth = Mapping[ids.GpuUuid, GpuHealth]


def fold(health: NodeHealth, observed: Observation, policy: Policy) -> NodeHealth:
    """Return the health after one more observation; only its own GPU's changes."""
    previous = health.get(observed.gpu, GpuHealth())
    match observed:
        case XidEvent():
            current = _after_xid(previous, observed, policy)
        case Polled(result=signs):
            current = _after_poll(previous, signs, policy)
        case Watched(problem=problem):
            current = dataclasses.replace(previous, unwatched=problem)
        case _:
            assert_never(observed)
    return {**health, observed.gpu: current}


def ailments(state: GpuHealth, policy: Policy) -> tuple[Ailment, ...]:
    """Return the ailments of a GPU, in a stable order."""
    result = [
        *_hung_ailments(state, policy),
        *_lost_ailments(state, policy),
        *_xid_ailments(state, policy),
        *_recovery_ailments(state.last_poll, policy),
    ]
    result += _memory_ailments(state.last_poll, policy)
    if state.unwatched and not state.lost and not state.hung:
        text = (
            f"its events cannot be had ({state.unwatched}); it is polled, and asked again each time"
        )
        result.append(Ailment(names.TAINT_UNMONITORED, "events", "None", text))
    return tuple(result)


def with_unread_gpus(
    known_ailments: Mapping[ids.GpuUuid, Sequence[Ailment]], unread: Iterable[ids.GpuUuid]
) -> Mapping[ids.GpuUuid, Sequence[Ailment]]:
    """Add an ailment for GPUs that could not be read although no poll has reported it yet."""
    text = "it could not be read when the GPUs were last read; cleared when it is"
    unread_ailments = (Ailment(names.TAINT_LOST, "unread", "NoSchedule", text),)
    return {
        **known_ailments,
        **{gpu: unread_ailments for gpu in unread if not known_ailments.get(gpu)},
    }


def is_healthy(all_ailments: Iterable[Ailment]) -> bool | None:
    """Return whether a device with these ailments is healthy; None if unknown.

    Quarantine does not count.
    """
    effects = {ailment.effect for ailment in all_ailments if ailment.key != names.TAINT_QUARANTINE}
    return False if effects - {"None"} else None if effects else True


def _after_xid(previous: GpuHealth, event: XidEvent, policy: Policy) -> GpuHealth:
    row = xids.lookup(policy.table, event.code)
    if policy.effect(row.xid_class) == "None":
        return previous
    # A fall of the counter from before this Xid to after it says nothing about this Xid.
    last_poll = dataclasses.replace(previous.last_poll, energy_mj=None)
    faults = previous.faults | {(event.code, event.instance)}
    return dataclasses.replace(previous, faults=faults, last_poll=last_poll, calm_polls=0)


def _after_poll(previous: GpuHealth, result: PollResult, policy: Policy) -> GpuHealth:
    if result.hung:
        return dataclasses.replace(previous, hung=result.hung, calm_polls=0)
    if result.problem:
        return dataclasses.replace(previous, lost=result.problem, hung="", calm_polls=0)
    if _is_reset(previous, result):
        return dataclasses.replace(previous, faults=frozenset(), last_poll=result, lost="", hung="")
    faults, calm_polls = previous.faults, 0
    if faults and result.recovery == RecoveryAction.NONE:
        calm_polls = previous.calm_polls + 1
        if calm_polls >= CALM_POLLS:
            faults, calm_polls = (
                frozenset(fault for fault in faults if not _is_disproved(fault, policy)),
                0,
            )
    return dataclasses.replace(
        previous, faults=faults, last_poll=result, calm_polls=calm_polls, lost="", hung=""
    )


def _is_disproved(fault: tuple[int, Instance | None], policy: Policy) -> bool:
    """Return whether a GPU without recovery action has recovered: a reset would cure the fault."""
    return xids.lookup(policy.table, fault[0]).xid_class is xids.XidClass.RESET


def _is_reset(previous: GpuHealth, result: PollResult) -> bool:
    """Return whether the GPU was reset, or left and came back, and asks for nothing now."""
    if result.recovery_action != RecoveryAction.NONE:
        return False
    if previous.lost or previous.last_poll.recovery_action != RecoveryAction.NONE:
        return True
    energy_before, energy_now = previous.last_poll.energy_mj, result.energy_mj
    return energy_before is not None and energy_now is not None and energy_now < energy_before


def _lost_ailments(gpu_health: GpuHealth, policy: Policy) -> Iterable[Ailment]:
    if gpu_health.lost and not gpu_health.hung:
        text = f"NVML cannot reach it ({gpu_health.lost}); cleared when it can again"
        yield Ailment(names.TAINT_LOST, "lost", policy.effect(xids.XidClass.NODE), text)


def _hung_ailments(gpu_health: GpuHealth, policy: Policy) -> Iterable[Ailment]:
    """Yield the ailment of a hang, which may pass by itself: it evicts no pod."""
    if gpu_health.hung:
        text = f"NVML cannot reach it: {gpu_health.hung} does not return; cleared when it has"
        yield Ailment(names.TAINT_LOST, "hung", policy.effect(xids.XidClass.RESET), text)


def _xid_ailments(gpu_health: GpuHealth, policy: Policy) -> Iterable[Ailment]:
    """Yield the gravest of each subject, by effect and then by code."""
    counts: dict[Instance | None, int] = {}
    for code, instance in sorted(gpu_health.faults, key=lambda fault: _severity(fault, policy)):
        row = xids.lookup(policy.table, code)
        counts[instance] = counts.get(instance, 0) + 1
        if counts[instance] <= XIDS_SHOWN:
            text = f"Xid {code}: {row.meaning}; cleared by a reset of the GPU"
            if row.xid_class is xids.XidClass.RESET:
                text += ", or when it goes on asking for nothing (field 230)"
            effect = policy.effect(row.xid_class)
            yield Ailment(names.TAINT_XID, str(code), effect, text, instance)


def _severity(fault: tuple[int, Instance | None], policy: Policy) -> tuple[bool, int, int, int]:
    code, instance = fault
    keeps_pods = policy.effect(xids.lookup(policy.table, code).xid_class) == "NoSchedule"
    return (keeps_pods, code, *_instance_key(instance))


def _instance_key(instance: Instance | None) -> tuple[int, int]:
    if instance is None:
        return (-1, -1)
    compute = instance.compute_instance
    return (instance.gpu_instance, -1 if compute is None else compute)


def _recovery_ailments(result: PollResult, policy: Policy) -> Iterable[Ailment]:
    action = result.recovery_action
    if action != RecoveryAction.NONE:
        name = action.name if isinstance(action, RecoveryAction) else f"ACTION_{action}"
        xid_class = xids.XidClass.NODE if action in _NODE_ACTIONS else xids.XidClass.RESET
        text = f"the GPU asks for {name} (field 230); cleared when it asks for nothing"
        yield Ailment(names.TAINT_RECOVERY, name, policy.effect(xid_class), text)


def _memory_ailments(result: PollResult, policy: Policy) -> Iterable[Ailment]:
    reset, broken = (
        policy.effect(xid_class) for xid_class in (xids.XidClass.RESET, xids.XidClass.HARDWARE)
    )
    if result.repair_pending:
        text = "bad memory waits for its repair; cleared by a reset of the GPU"
        yield Ailment(names.TAINT_ROW_REMAP, "pending", reset, text)
    if result.repair_failed:
        text = "bad memory could not be repaired; the GPU wants replacing"
        yield Ailment(names.TAINT_ROW_REMAP, "failed", broken, text)
    if result.sram_exceeded:
        text = "too many errors of on-chip memory; the GPU wants replacing"
        yield Ailment(names.TAINT_ECC, "sram-threshold", broken, text)
    if result.unrepairable:
        text = "memory is beyond repair; the GPU wants replacing"
        yield Ailment(names.TAINT_ECC, "unrepairable", broken, text)

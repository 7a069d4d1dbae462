"""Values of pending pods by reason, and of Reservations by phase. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from driver import ids, reasons
from driver.controller.commit import write_pool
from driver.controller.scheduler import pending
from driver.resources import reservations
from driver.runtime.metrics.families import NO_LABELS, Family, Figures
from driver.scheduling.lifecycle import backfill_plan

PENDING: Final = "Pending"
REASONS: Final = (
    reasons.Reason.NO_FIT.value,
    reasons.Reason.QUEUE_LIMIT_EXCEEDED.value,
    reasons.Reason.GANG_PENDING.value,
    reasons.Reason.GANG_INVALID.value,
    reasons.Reason.GANG_RELEASED.value,
    reasons.Reason.PREEMPTING.value,
    PENDING,
)
"""Last reported reason of a pending pod."""
PHASES: Final = ("Pending", "Held", "Used", "Expired")
PODS: Final = Family(
    "dra_gpu_controller_waiting_pods",
    f"Pods with unallocated claims, by the last reported reason; {PENDING} if there was none.",
    ("reason",),
)
GANGS: Final = Family("dra_gpu_controller_waiting_gangs", "Pending gangs.")
KNOWN_GANGS: Final = Family("dra_gpu_controller_gangs", "Gangs with live pods, pending or not.")
FLIGHT: Final = Family(
    "dra_gpu_controller_writes_in_flight",
    "Decided allocations whose write has not completed.",
)
DOUBT: Final = Family(
    "dra_gpu_controller_writes_in_doubt",
    "In-flight writes that failed without a response and will be retried.",
)
RESERVED: Final = Family("dra_gpu_controller_reservations", "Reservations by phase.", ("phase",))
BACKFILL: Final = Family(
    "dra_gpu_controller_backfill_gpus",
    "GPUs that backfill reserves for the workload at the head of the line, including "
    "those still in use, by why: known-end (every blocking workload declares its end) or "
    "starved (it has waited too long).",
    ("why",),
)
BACKFILL_END: Final = Family(
    "dra_gpu_controller_backfill_end_timestamp_seconds",
    "Unix time at which the backfill reservation ends; 0 without one.",
)
FAMILIES: Final = (*(PODS, GANGS, KNOWN_GANGS, FLIGHT, DOUBT, RESERVED, BACKFILL, BACKFILL_END),)
Waits = tuple[write_pool.WorkItem, pending.PendingWorkload | None]


@dataclass(frozen=True, slots=True)
class PendingState:
    """State of the scheduler now. `pending_reasons` is each pod's last reported reason."""

    waiting: tuple[Waits, ...] = ()
    uids: Mapping[ids.Key, ids.PodUid] = field(default_factory=dict)
    pending_reasons: Mapping[ids.PodUid, reasons.Reason] = field(default_factory=dict)
    gangs: int = 0
    in_flight: int = 0
    in_doubt: int = 0
    plan: backfill_plan.BackfillPlan | None = None


def pending_values(state: PendingState, reserved: Iterable[reservations.Reservation]) -> Figures:
    """Return the metric values."""
    why = Counter(
        _pending_reason(state, uid)
        for reservation in state.waiting
        for uid in _pods(reservation, state.uids)
    )
    phases = Counter(reservation.phase for reservation in reserved)
    gangs = sum(item.kind == "gang" for item, _ in state.waiting)
    return {
        PODS.name: {(reason,): why[reason] for reason in REASONS},
        GANGS.name: {NO_LABELS: gangs},
        KNOWN_GANGS.name: {NO_LABELS: state.gangs},
        FLIGHT.name: {NO_LABELS: state.in_flight},
        DOUBT.name: {NO_LABELS: state.in_doubt},
        RESERVED.name: {(phase,): phases[phase] for phase in PHASES},
        BACKFILL.name: {
            (why.value,): _planned(state.plan, why) for why in backfill_plan.PlanReason
        },
        BACKFILL_END.name: {NO_LABELS: state.plan.until.timestamp() if state.plan else 0.0},
    }


def _planned(plan: backfill_plan.BackfillPlan | None, why: backfill_plan.PlanReason) -> int:
    """Return the GPUs of a plan with this cause."""
    return sum(map(len, plan.gpus.values())) if plan is not None and plan.reason is why else 0


def _pods(waiting: Waits, uids: Mapping[ids.Key, ids.PodUid]) -> Iterable[ids.PodUid | None]:
    item, candidate = waiting
    if candidate is not None:
        return [work.pod.uid for work in candidate.workloads]
    return [uids.get(item.key)]


def _pending_reason(state: PendingState, uid: ids.PodUid | None) -> str:
    reason = state.pending_reasons.get(uid) if uid is not None else None
    return reason.value if reason is not None and reason.value in REASONS else PENDING

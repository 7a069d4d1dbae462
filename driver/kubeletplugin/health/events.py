"""Tells users of their GPUs' health: on the node, and on every claim that holds the GPU."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from driver import clock, ids, reasons
from driver.devices import health, quarantine_policy, xids
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import ports

_log = structlog.get_logger(__name__)
REPEAT_S = 300.0
"""The same Xid of the same GPU is told once in so long: a program may cause thousands."""

Holders = Callable[[ids.GpuUuid, health.Instance | None], tuple[ports.ClaimRef, ...]]
"""The claims that hold a GPU; with an instance, that MIG instance of it."""


@dataclass(frozen=True, slots=True)
class EventTargets:
    """Who is told. `node_uid` may be empty while the Node has not been read."""

    node: ids.NodeName
    node_uid: Callable[[], str]
    holders: Holders


class HealthEvents:
    """Used by one thread."""

    def __init__(
        self, teller: plugin_events.EventReporter, audience: EventTargets, clock: clock.Clock
    ) -> None:
        self._reporter = teller
        self._targets = audience
        self._clock = clock
        self._reported_at: dict[health.XidEvent, float] = {}

    def report_xid(self, event: health.XidEvent, row: xids.Xid, *, ails: bool) -> bool:
        """An Xid happened; whether it was not told a short while ago.

        One that `ails` the GPU is only logged here: users hear of it as an ailment.
        """
        if not self._is_new(event):
            return False
        _log.info("xid", gpu=event.gpu, xid=row.code, xid_class=row.xid_class.value)
        if not ails:
            self._warn_xid(event, row)
        return True

    def _warn_xid(self, event: health.XidEvent, row: xids.Xid) -> None:
        theirs = row.xid_class is xids.XidClass.APPLICATION
        reason = reasons.Reason.GPU_APPLICATION_ERROR if theirs else reasons.Reason.GPU_NOTICE
        text = f"{_subject(event.gpu, event.instance)}: Xid {row.code}: {row.meaning}"
        self._warn(event.gpu, event.instance, reason, text)

    def report_change(
        self,
        gpu: ids.GpuUuid,
        before: Sequence[health.Ailment],
        after: Sequence[health.Ailment],
    ) -> None:
        """What ails a GPU is another than it was."""
        known = {_ailment_key(one) for one in before}
        for one in after:
            if _ailment_key(one) not in known:
                text = f"{_subject(gpu, one.instance)}: {one.message}"
                self._warn(gpu, one.instance, _reason(one), text)
        kept = any(map(quarantine_policy.is_quarantine, after))
        if (
            health.is_healthy(before) is False
            and health.is_healthy(after) is not False
            and not kept
        ):
            text = f"{gpu}: nothing ails it any more"
            self._notify(gpu, reasons.Reason.GPU_RECOVERED, text)
        if any(map(quarantine_policy.is_quarantine, before)) and not kept:
            text = f"{gpu}: its failures are forgotten, as the Node's annotation asked"
            self._notify(gpu, reasons.Reason.GPU_QUARANTINE_CLEARED, text)

    def _notify(self, gpu: ids.GpuUuid, reason: reasons.Reason, text: str) -> None:
        audience = self._targets
        self._reporter.notify_node(audience.node, audience.node_uid(), reason, text)
        for ref in audience.holders(gpu, None):
            self._reporter.notify_claim(ref, reason, text)

    def _warn(
        self,
        gpu: ids.GpuUuid,
        instance: health.Instance | None,
        reason: reasons.Reason,
        text: str,
    ) -> None:
        audience = self._targets
        self._reporter.warn_node(audience.node, audience.node_uid(), reason, text)
        for ref in audience.holders(gpu, instance):
            self._reporter.warn_claim(ref, reason, text)

    def _is_new(self, event: health.XidEvent) -> bool:
        now = self._clock.monotonic()
        at = self._reported_at.get(event)
        if at is not None and now - at < REPEAT_S:
            return False
        self._reported_at = {
            one: at for one, at in self._reported_at.items() if now - at < REPEAT_S
        }
        self._reported_at[event] = now
        return True


def _reason(one: health.Ailment) -> reasons.Reason:
    if quarantine_policy.is_quarantine(one):
        return reasons.Reason.GPU_QUARANTINED
    return reasons.Reason.GPU_NOTICE if one.effect == "None" else reasons.Reason.GPU_UNHEALTHY


def _ailment_key(one: health.Ailment) -> tuple[str, str, str, health.Instance | None]:
    return one.key, one.value, one.effect, one.instance


def _subject(gpu: ids.GpuUuid, instance: health.Instance | None) -> str:
    if instance is None:
        return gpu
    compute = instance.compute_instance
    tail = "" if compute is None else f" compute instance {compute}"
    return f"{gpu} GPU instance {instance.gpu_instance}{tail}"

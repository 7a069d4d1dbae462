"""Reports GPU health: events on the node, and on every claim that holds the GPU."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from driver import clock, ids, reasons
from driver.devices import health, quarantine_policy, xids
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import ports

_log = structlog.get_logger(__name__)
REPEAT_S = 300.0
"""The same Xid of a GPU is reported once in this time: a program may cause thousands."""

Holders = Callable[[ids.GpuUuid, health.Instance | None], tuple[ports.ClaimRef, ...]]
"""The claims that hold a GPU; with an instance, that MIG instance of it."""


@dataclass(frozen=True, slots=True)
class EventTargets:
    """Targets of events. `node_uid` may be empty while the Node has not been read."""

    node: ids.NodeName
    node_uid: Callable[[], str]
    holders: Holders


class HealthEvents:
    """Used by one thread."""

    def __init__(
        self, reporter: plugin_events.EventReporter, targets: EventTargets, clock: clock.Clock
    ) -> None:
        self._reporter = reporter
        self._targets = targets
        self._clock = clock
        self._last_reports: dict[health.XidEvent, float] = {}

    def report_xid(self, event: health.XidEvent, row: xids.Xid, *, ails: bool) -> bool:
        """Report an Xid; return whether it was not reported recently.

        An Xid that `ails` the GPU is only logged here: it is reported as an ailment.
        """
        if not self._is_new(event):
            return False
        _log.info("xid", gpu=event.gpu, xid=row.code, xid_class=row.xid_class.value)
        if not ails:
            self._warn_xid(event, row)
        return True

    def _warn_xid(self, event: health.XidEvent, row: xids.Xid) -> None:
        is_application = row.xid_class is xids.XidClass.APPLICATION
        reason = (
            reasons.Reason.GPU_APPLICATION_ERROR if is_application else reasons.Reason.GPU_NOTICE
        )
        text = f"{_subject(event.gpu, event.instance)}: Xid {row.code}: {row.meaning}"
        self._warn(event.gpu, event.instance, reason, text)

    def report_change(
        self,
        gpu: ids.GpuUuid,
        previous: Sequence[health.Ailment],
        current: Sequence[health.Ailment],
    ) -> None:
        """Report a change of a GPU's ailments."""
        previous_keys = {_ailment_key(ailment) for ailment in previous}
        for ailment in current:
            if _ailment_key(ailment) not in previous_keys:
                text = f"{_subject(gpu, ailment.instance)}: {ailment.message}"
                self._warn(gpu, ailment.instance, _reason(ailment), text)
        in_quarantine = any(map(quarantine_policy.is_quarantine, current))
        if (
            health.is_healthy(previous) is False
            and health.is_healthy(current) is not False
            and not in_quarantine
        ):
            text = f"{gpu}: it is healthy again"
            self._notify(gpu, reasons.Reason.GPU_RECOVERED, text)
        if any(map(quarantine_policy.is_quarantine, previous)) and not in_quarantine:
            text = f"{gpu}: its quarantine was cleared by the Node's annotation"
            self._notify(gpu, reasons.Reason.GPU_QUARANTINE_CLEARED, text)

    def _notify(self, gpu: ids.GpuUuid, reason: reasons.Reason, text: str) -> None:
        targets = self._targets
        self._reporter.notify_node(targets.node, targets.node_uid(), reason, text)
        for ref in targets.holders(gpu, None):
            self._reporter.notify_claim(ref, reason, text)

    def _warn(
        self,
        gpu: ids.GpuUuid,
        instance: health.Instance | None,
        reason: reasons.Reason,
        text: str,
    ) -> None:
        targets = self._targets
        self._reporter.warn_node(targets.node, targets.node_uid(), reason, text)
        for ref in targets.holders(gpu, instance):
            self._reporter.warn_claim(ref, reason, text)

    def _is_new(self, event: health.XidEvent) -> bool:
        now = self._clock.monotonic()
        reported_at = self._last_reports.get(event)
        if reported_at is not None and now - reported_at < REPEAT_S:
            return False
        self._last_reports = {
            xid_event: reported_at
            for xid_event, reported_at in self._last_reports.items()
            if now - reported_at < REPEAT_S
        }
        self._last_reports[event] = now
        return True


def _reason(ailment: health.Ailment) -> reasons.Reason:
    if quarantine_policy.is_quarantine(ailment):
        return reasons.Reason.GPU_QUARANTINED
    return reasons.Reason.GPU_NOTICE if ailment.effect == "None" else reasons.Reason.GPU_UNHEALTHY


def _ailment_key(ailment: health.Ailment) -> tuple[str, str, str, health.Instance | None]:
    return ailment.key, ailment.value, ailment.effect, ailment.instance


def _subject(gpu: ids.GpuUuid, instance: health.Instance | None) -> str:
    if instance is None:
        return gpu
    compute = instance.compute_instance
    tail = "" if compute is None else f" compute instance {compute}"
    return f"{gpu} GPU instance {instance.gpu_instance}{tail}"

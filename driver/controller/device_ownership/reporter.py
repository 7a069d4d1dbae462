"""Events and logs of device ownership. Each lasting problem is reported once."""

import structlog

from driver import errors, reasons
from driver.controller.device_ownership import rule_writer
from driver.kube import gvr
from driver.kube.events import recorder as event_recorder
from driver.resources.dra import taint_rules
from driver.scheduling.device_ownership import messages

NOT_SERVED = (
    "the API server serves no DeviceTaintRules, so no device of a managed driver passes to the "
    "controller: on Kubernetes 1.36 enable the feature gate DRADeviceTaintRules in kube-apiserver, "
    "kube-controller-manager and kube-scheduler, and resource.k8s.io/v1beta2 by --runtime-config"
)
NOT_OBSERVED = (
    "kube-controller-manager does not act on this rule, so kube-scheduler may not either, and the "
    "handover does not end: enable the feature gate DRADeviceTaintRules in both"
)
_log = structlog.get_logger(__name__)


class OwnershipReporter:
    """Reports handovers on their rules, and problems on the rule or on `fallback`."""

    def __init__(
        self, recorder: event_recorder.Recorder, fallback: event_recorder.ObjectRef
    ) -> None:
        self._recorder = recorder
        self._fallback = fallback
        self._reported: dict[str, str] = {}

    def handover(self, rule: taint_rules.TaintRule, event: messages.Event) -> None:
        """Report the begin or the end of a handover."""
        reason, message = event
        _log.info("device ownership changes", rule=rule.name, reason=reason.value, message=message)
        self._recorder.event(_rule_ref(rule), reason.value, message, warning=False)

    def not_served(self) -> None:
        """Report that the server does not serve the kind."""
        self._problem(self._fallback, NOT_SERVED)

    def not_observed(self, rule: taint_rules.TaintRule) -> None:
        """Report that Kubernetes does not act on a rule."""
        self._problem(_rule_ref(rule), NOT_OBSERVED)

    def failure(self, rule: str, error: errors.ApiError) -> None:
        """Report a request that failed; the same failure is not logged again."""
        if self._is_new(rule, str(error)):
            _log.warning("device taint rule not written", rule=rule, error=str(error))

    def _problem(self, regarding: event_recorder.ObjectRef, message: str) -> None:
        if self._is_new(regarding.name, message):
            _log.warning("device taint rules have no effect", object=regarding.name, error=message)
            reason = reasons.Reason.DEVICE_TAINT_RULES_DISABLED.value
            self._recorder.event(regarding, reason, message, warning=True)

    def _is_new(self, subject: str, message: str) -> bool:
        is_new = self._reported.get(subject) != message
        self._reported[subject] = message
        return is_new


def _rule_ref(rule: taint_rules.TaintRule) -> event_recorder.ObjectRef:
    version = gvr.DEVICE_TAINT_RULES.api_version
    return event_recorder.ObjectRef(rule_writer.KIND, version, "", rule.name, rule.uid)

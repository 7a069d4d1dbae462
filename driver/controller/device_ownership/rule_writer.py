"""Writes of DeviceTaintRules under the term, each on the version of the rule that was read."""

from collections.abc import Callable
from dataclasses import replace

import structlog

from driver import errors, names
from driver.kube import client, fenced_writer, gvr
from driver.resources.dra import taint_rules
from driver.scheduling.device_ownership import rule_plan, rule_taints

KIND = "DeviceTaintRule"
_LABELS = {"app.kubernetes.io/managed-by": "ration", names.ALLOCATOR_RULE: "true"}
_log = structlog.get_logger(__name__)


class RuleWriter:
    """Creates, changes and deletes rules in the newest version of the API that the server serves.

    `observe` gets the server's answers. Methods raise ApiError, Conflict where a rule changed.
    """

    def __init__(
        self,
        kube: client.KubeClient,
        writer: fenced_writer.FencedWriter,
        observe: Callable[[gvr.Object], None],
    ) -> None:
        self._kube = kube
        self._writer = writer
        self._observe = observe
        self._served: gvr.Resource | None = None

    def served_kind(self) -> gvr.Resource | None:
        """Return the kind in its served version; None while the server serves none."""
        for version in gvr.DEVICE_TAINT_RULE_VERSIONS if self._served is None else ():
            kind = replace(gvr.DEVICE_TAINT_RULES, version=version)
            try:
                self._kube.walk(kind, limit=1)
            except errors.NotFound:
                continue
            _log.info("device taint rules are served", version=version)
            self._served = kind
            break
        return self._served

    def forget_served_kind(self) -> None:
        """Ask the server again: it may have been upgraded."""
        self._served = None

    def create(self, selector: rule_plan.DeviceSelector, taint: rule_plan.RuleTaint) -> gvr.Object:
        """Create the rule of a selector. Raises AlreadyExists where another has its name."""
        named = {"driver": selector.driver, "pool": selector.pool, "device": selector.device}
        kind = self._kind()
        body: gvr.Object = {
            "apiVersion": kind.api_version,
            "kind": KIND,
            "metadata": {
                "name": rule_plan.rule_name(selector),
                "labels": dict(_LABELS),
                "annotations": self._fence(),
            },
            "spec": {
                "deviceSelector": {key: value for key, value in named.items() if value is not None},
                "taint": rule_taints.render_taint(taint),
            },
        }
        return self._observed(self._writer.create(kind, body))

    def set_taint(self, rule: taint_rules.TaintRule, taint: rule_plan.RuleTaint) -> gvr.Object:
        """Replace the taint of a rule; the server sets its time anew."""
        # In a merge patch null removes the value of the former taint.
        former = {"value": None, "timeAdded": None}
        return self._patch(rule, {"spec": {"taint": former | rule_taints.render_taint(taint)}})

    def delete(self, rule: taint_rules.TaintRule) -> None:
        """Delete a rule, once it carries the name of this term: a DELETE itself carries none."""
        version = rule.version
        if rule.fence != self._writer.field_manager():
            version = str(self._patch(rule, {})["metadata"]["resourceVersion"])
        self._writer.delete(self._kind(), rule.name, uid=rule.uid, version=version)

    def _patch(self, rule: taint_rules.TaintRule, body: gvr.Object) -> gvr.Object:
        meta = {"resourceVersion": rule.version, "annotations": self._fence()}
        answer = self._writer.patch(self._kind(), rule.name, {**body, "metadata": meta})
        return self._observed(answer)

    def _fence(self) -> dict[str, str]:
        return {names.FENCE: self._writer.field_manager()}

    def _observed(self, answer: gvr.Object) -> gvr.Object:
        self._observe(answer)
        return answer

    def _kind(self) -> gvr.Resource:
        return self._served or gvr.DEVICE_TAINT_RULES

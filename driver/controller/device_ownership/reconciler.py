"""Reconciles the DeviceTaintRules of managed drivers with the configuration (D2), while leading."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driver import clock, errors, ids
from driver.controller.device_ownership import reporter, rule_writer
from driver.kube import gvr, store
from driver.resources.core import nodes
from driver.resources.dra import slices, taint_rules
from driver.scheduling.device_ownership import desired, messages, rule_plan, rule_taints

INTERVAL_S = 2.0
UNOBSERVED_S = 60.0
"""Seconds in handover after which a rule that Kubernetes has not acknowledged is reported."""
_AGAIN_S = 60.0
_Selectors = frozenset[rule_plan.DeviceSelector]


@dataclass(frozen=True, slots=True)
class Caches:
    """Stores that are read; `is_fresh`: they are filled, and rules and slices not stale."""

    nodes: store.Store[nodes.Node]
    slices: store.Store[slices.Slice]
    rules: store.Store[taint_rules.TaintRule]
    is_fresh: Callable[[], bool]


class OwnershipReconciler:
    """Sends the writes of `rule_plan` every two seconds. Rules go through a handover either way.

    The time of a handover is counted in this process alone: a new leader starts it again.
    """

    def __init__(
        self,
        drivers: Sequence[desired.ManagedDriver],
        caches: Caches,
        writer: rule_writer.RuleWriter,
        report: reporter.OwnershipReporter,
        time: clock.Clock,
    ) -> None:
        self._drivers = drivers
        self._caches = caches
        self._writer = writer
        self._report = report
        self._clock = time
        self._pools: dict[desired.PoolKey, ids.NodeName | None] = {}
        self._first_seen: dict[taint_rules.TaintRule, float] = {}

    def run(self, stop: threading.Event) -> None:
        """Reconcile every two seconds until `stop` is set; less often without the API."""
        wait_s = 0.0
        while not self._clock.wait(stop, wait_s):
            wait_s = INTERVAL_S if self.reconcile() else _AGAIN_S

    def reconcile(self) -> bool:
        """Send the writes that are due; return whether the server serves the kind."""
        try:
            kind = self._writer.served_kind()
        except errors.ApiError as error:
            self._report.failure("any", error)
            return True
        if kind is None:
            self._report.not_served()
            return False
        if self._caches.is_fresh():
            self._send(kind)
        return True

    def _send(self, kind: gvr.Resource) -> None:
        stored = self._stored_rules()
        rules = [self._parsed(rule, kind) for rule in stored.values()]
        selectors = self._desired()
        for write in rule_plan.plan_writes(selectors, rules):
            if not self._write(write, stored, selectors):
                return
        for rule in rules:
            if not rule.acknowledged and rule.seen_s >= UNOBSERVED_S:
                self._report.not_observed(stored[rule.name])

    def _stored_rules(self) -> dict[str, taint_rules.TaintRule]:
        """Return our rules by name, and count the time since each was first seen as it is."""
        now_s = self._clock.monotonic()
        snapshot = self._caches.rules.snapshot().values()
        stored = {rule.name: rule for rule in snapshot if rule.is_allocator_rule}
        self._first_seen = {rule: self._first_seen.get(rule, now_s) for rule in stored.values()}
        return stored

    def _parsed(self, rule: taint_rules.TaintRule, kind: gvr.Resource) -> rule_plan.AllocatorRule:
        # In 1.36 the API can be served while the feature gate is off, and rules have no effect.
        acknowledged = rule.observed or kind.version == gvr.DEVICE_TAINT_RULES.version
        return rule_plan.AllocatorRule(
            rule.name,
            rule_plan.DeviceSelector(rule.driver, rule.pool, rule.device) if rule.selects else None,
            rule_taints.shown_taint(rule),
            self._clock.monotonic() - self._first_seen[rule],
            acknowledged,
        )

    def _desired(self) -> _Selectors:
        """Return the desired selectors.

        A pool without slices stays the pool of its node while that is there: its driver may only be
        restarting.
        """
        live = {node.name: node for node in self._caches.nodes.snapshot().values()}
        earlier = {pool: node for pool, node in self._pools.items() if node in live}
        published = self._caches.slices.snapshot().values()
        self._pools = {**earlier, **desired.pool_nodes(published, self._drivers)}
        return desired.desired_selectors(self._drivers, self._pools, live)

    def _write(
        self,
        write: rule_plan.Write,
        stored: dict[str, taint_rules.TaintRule],
        selectors: _Selectors,
    ) -> bool:
        """Send a write; return whether to go on with the next: its outcome is known."""
        name = _rule_name(write)
        try:
            written = self._apply(write, stored)
        except errors.Conflict:
            return True  # the store will have the newer version
        except (errors.Unreachable, errors.ServerError) as error:
            self._report.failure(name, error)
            return False
        except errors.NotFound as error:
            if isinstance(write, rule_plan.Create):
                self._writer.forget_served_kind()
                self._report.failure(name, error)
            return True
        except errors.ApiError as error:
            self._report.failure(name, error)
            return True
        event = messages.event(write, selectors)
        if event is not None:
            self._report.handover(written, event)
        return True

    def _apply(
        self, write: rule_plan.Write, stored: dict[str, taint_rules.TaintRule]
    ) -> taint_rules.TaintRule:
        """Send a write; return the rule as written, or as it was before its deletion."""
        match write:
            case rule_plan.Create(selector, taint):
                return taint_rules.parse(self._writer.create(selector, taint))
            case rule_plan.SetTaint(rule, taint):
                return taint_rules.parse(self._writer.set_taint(stored[rule.name], taint))
            case rule_plan.Delete(rule):
                self._writer.delete(stored[rule.name])
                return stored[rule.name]


def _rule_name(write: rule_plan.Write) -> str:
    if isinstance(write, rule_plan.Create):
        return rule_plan.rule_name(write.selector)
    return write.rule.name

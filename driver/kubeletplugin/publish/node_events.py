"""What is told of a node's devices: an event on the Node, once for the same words."""

from collections.abc import Iterable

import structlog

from driver import reasons
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin.publish import pool_builder
from driver.resources.core import nodes

_log = structlog.get_logger(__name__)


class NodeEvents:
    """Used by one thread. Nothing is told before the Node is known."""

    def __init__(self, teller: plugin_events.EventReporter) -> None:
        self._reporter = teller
        self._reported: dict[reasons.Reason, str] = {}

    def report(self, node: nodes.Node, problem: pool_builder.Problem) -> None:
        """Tell it, unless the last words for its reason were the same."""
        if self._reported.get(problem.reason) == problem.message:
            return
        self._reported[problem.reason] = problem.message
        _log.warning("devices not as they should be", reason=problem.reason, text=problem.message)
        self._reporter.warn_node(node.name, node.uid, problem.reason, problem.message)

    def report_current(self, node: nodes.Node, problems: Iterable[pool_builder.Problem]) -> None:
        """Tell what is wrong now; what is no longer may be told again when it comes back."""
        found = tuple(problems)
        for reason in self._reported.keys() - {one.reason for one in found}:
            if reason is not reasons.Reason.FIELDS_DROPPED:
                del self._reported[reason]
        for one in found:
            self.report(node, one)

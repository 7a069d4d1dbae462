"""Events on the Node about its devices, deduplicated by message."""

from collections.abc import Iterable

import structlog

from driver import reasons
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin.publish import pool_builder
from driver.resources.core import nodes

_log = structlog.get_logger(__name__)


class NodeEvents:
    """Used by one thread. Reports nothing before the Node is known."""

    def __init__(self, reporter: plugin_events.EventReporter) -> None:
        self._reporter = reporter
        self._reported: dict[reasons.Reason, str] = {}

    def report(self, node: nodes.Node, problem: pool_builder.Problem) -> None:
        """Report a problem, unless the last message for its reason was the same."""
        if self._reported.get(problem.reason) == problem.message:
            return
        self._reported[problem.reason] = problem.message
        _log.warning("devices not as they should be", reason=problem.reason, text=problem.message)
        self._reporter.warn_node(node.name, node.uid, problem.reason, problem.message)

    def report_current(self, node: nodes.Node, problems: Iterable[pool_builder.Problem]) -> None:
        """Report current problems; a problem that ended may be reported again when it returns."""
        current = tuple(problems)
        for reason in self._reported.keys() - {problem.reason for problem in current}:
            if reason is not reasons.Reason.FIELDS_DROPPED:
                del self._reported[reason]
        for problem in current:
            self.report(node, problem)

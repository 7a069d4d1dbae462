"""Shortfall of a node: how many devices fit, and why others do not.

Devices are taken in order, for the first subrequest with the most of them: this explains a
rejection and decides nothing. Pure.
"""

from collections import Counter

from driver import reasons
from driver.scheduling.allocator import candidates, search
from driver.scheduling.allocator.constraints import counters


def count_shortfall(problem: search.Problem) -> tuple[int, int, Counter[reasons.Reason]]:
    """Return the devices that fit at once, those requested, and rejected devices by reason."""
    tracker = counters.CounterTracker(problem.remaining, problem.devices)
    counted: Counter[reasons.Reason] = Counter()
    fits = requested = 0
    for constraint in problem.constraints:
        constraint.clear()
    for index, alternatives in enumerate(problem.candidates):
        options = max(
            alternatives,
            key=lambda alternative: min(
                len(alternative.indexes) - len(alternative.unavailable), alternative.count
            ),
        )
        requested += options.count
        filled, rejections = _fill_request(problem, tracker, index, options)
        fits += filled
        counted |= options.rejections + rejections
    return fits, requested, counted


def _fill_request(
    problem: search.Problem,
    tracker: counters.CounterTracker,
    request: int,
    options: candidates.RequestCandidates,
) -> tuple[int, Counter[reasons.Reason]]:
    claim = problem.claim_indexes[request]
    constraints = [
        constraint
        for constraint in problem.constraints
        if constraint.covers(claim, options.subrequest.name)
    ]
    rejections: Counter[reasons.Reason] = Counter()
    filled = 0
    for index in options.indexes:
        if (
            index in options.selector_errors
            or index in options.unavailable
            or filled == options.count
        ):
            continue
        rejecting = next(
            (constraint for constraint in constraints if not constraint.accepts(index)), None
        )
        if rejecting is not None:
            rejections[rejecting.reason] += 1
        elif tracker.try_allocate(index, options, claim):
            filled += 1
            for constraint in constraints:
                constraint.add(index)
        elif not tracker.is_used(index):
            rejections[_untaken_reason(tracker, index)] += 1
    return filled, rejections


def _untaken_reason(tracker: counters.CounterTracker, index: int) -> reasons.Reason:
    if not tracker.admits_groups(index):
        return reasons.Reason.INCOMPATIBLE_GROUPS
    return reasons.Reason.COUNTERS_EXHAUSTED

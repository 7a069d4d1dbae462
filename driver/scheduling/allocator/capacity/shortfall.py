"""How far a node falls short of a workload: how many devices fit, and why others do not.

Devices are taken as they come, each request's first way that counts at all: it explains a refusal,
it decides nothing. Pure.
"""

from collections import Counter

from driver import reasons
from driver.scheduling.allocator import candidates, search
from driver.scheduling.allocator.constraints import counters


def count_shortfall(problem: search.Problem) -> tuple[int, int, Counter[reasons.Reason]]:
    """Devices that fit at once, devices wanted, and how many devices each reason keeps away."""
    taken = counters.CounterTracker(problem.remaining, problem.devices)
    counted: Counter[reasons.Reason] = Counter()
    fits = wanted = 0
    for tie in problem.constraints:
        tie.clear()
    for want, ways in enumerate(problem.candidates):
        offer = max(ways, key=lambda one: min(len(one.indexes) - len(one.unavailable), one.count))
        wanted += offer.count
        had, kept = _fill_request(problem, taken, want, offer)
        fits += had
        counted |= offer.rejections + kept
    return fits, wanted, counted


def _fill_request(
    problem: search.Problem,
    taken: counters.CounterTracker,
    want: int,
    offer: candidates.RequestCandidates,
) -> tuple[int, Counter[reasons.Reason]]:
    claim = problem.claim_indexes[want]
    ties = [tie for tie in problem.constraints if tie.covers(claim, offer.subrequest.name)]
    kept: Counter[reasons.Reason] = Counter()
    had = 0
    for place in offer.indexes:
        if place in offer.selector_errors or place in offer.unavailable or had == offer.count:
            continue
        refusing = next((tie for tie in ties if not tie.accepts(place)), None)
        if refusing is not None:
            kept[refusing.reason] += 1
        elif taken.try_allocate(place, offer, claim):
            had += 1
            for tie in ties:
                tie.add(place)
        elif not taken.is_used(place):
            kept[reasons.Reason.COUNTERS_TAKEN] += 1
    return had, kept

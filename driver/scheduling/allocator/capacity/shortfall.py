"""How far a node falls short of a workload: how many devices fit, and why others do not.

Devices are taken as they come, each request's first way that counts at all: it explains a refusal,
it decides nothing. Pure.
"""

from collections import Counter

from driver import reasons
from driver.scheduling.allocator import candidates, search
from driver.scheduling.allocator.constraints import counters


def of(problem: search.Problem) -> tuple[int, int, Counter[reasons.Reason]]:
    """Devices that fit at once, devices wanted, and how many devices each reason keeps away."""
    taken = counters.Tally(problem.lefts, problem.spots)
    counted: Counter[reasons.Reason] = Counter()
    fits = wanted = 0
    for tie in problem.ties:
        tie.clear()
    for want, ways in enumerate(problem.offers):
        offer = max(ways, key=lambda one: min(len(one.places) - len(one.barred), one.count))
        wanted += offer.count
        had, kept = _fill(problem, taken, want, offer)
        fits += had
        counted |= offer.refused + kept
    return fits, wanted, counted


def _fill(
    problem: search.Problem, taken: counters.Tally, want: int, offer: candidates.Offer
) -> tuple[int, Counter[reasons.Reason]]:
    claim = problem.claim_of[want]
    ties = [tie for tie in problem.ties if tie.covers(claim, offer.way.name)]
    kept: Counter[reasons.Reason] = Counter()
    had = 0
    for place in offer.places:
        if place in offer.failing or place in offer.barred or had == offer.count:
            continue
        refusing = next((tie for tie in ties if not tie.accepts(place)), None)
        if refusing is not None:
            kept[refusing.reason] += 1
        elif taken.take(place, offer, claim):
            had += 1
            for tie in ties:
                tie.add(place)
        elif not taken.used(place):
            kept[reasons.Reason.COUNTERS_TAKEN] += 1
    return had, kept

"""A gang's answers in words (D19). Pure."""

import itertools
from collections.abc import Iterator

from driver.scheduling.allocator import messages as of_one
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import topology
from driver.scheduling.gangs import types as gang_types

_MAX_DOMAINS = 8


def gang_unschedulable(answer: gang_types.GangUnschedulable, asked: topology.Topology) -> str:
    """How many find a place in each domain, those with as many together; the best one's reasons."""
    if answer.blocker is not None:
        return of_one.unschedulable(answer.blocker)
    return ". ".join(_sentences_of(answer, asked))


def _sentences_of(answer: gang_types.GangUnschedulable, asked: topology.Topology) -> Iterator[str]:
    level = "the cluster" if asked.required is None else f"one {asked.required}"
    yield f"No place for all {answer.requested} of the gang in {level}"
    grouped = itertools.groupby(answer.shortages, key=lambda one: one.fits)
    for fits, found in itertools.islice(grouped, _MAX_DOMAINS):
        names = [topology.describe(asked, one.domain) for one in found]
        more = f" and {len(names) - _MAX_DOMAINS} more" if len(names) > _MAX_DOMAINS else ""
        yield f"{', '.join(names[:_MAX_DOMAINS])}{more}: at most {fits} of {answer.requested}"
    if answer.shortages and answer.shortages[0].rejections:
        best = answer.shortages[0]
        why = of_one.unschedulable(allocator_types.Unschedulable(rejections=best.rejections))
        yield f"Then, in {topology.describe(asked, best.domain)}: {why}"
    if answer.unlabelled:
        yield f"{len(answer.unlabelled)} nodes left out for a label that they lack"

"""Messages of gang scheduling results (D19). Pure."""

import itertools
from collections.abc import Iterator

from driver.scheduling.allocator import messages as of_one
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import topology
from driver.scheduling.gangs import types as gang_types

_MAX_DOMAINS = 8


def gang_unschedulable(
    unschedulable: gang_types.GangUnschedulable, topology_request: topology.Topology
) -> str:
    """Return how many members fit in each domain, equal ones grouped, and the best's reasons."""
    if unschedulable.blocker is not None:
        return of_one.unschedulable(unschedulable.blocker)
    return ". ".join(_sentences_of(unschedulable, topology_request))


def _sentences_of(
    unschedulable: gang_types.GangUnschedulable, topology_request: topology.Topology
) -> Iterator[str]:
    level = (
        "the cluster" if topology_request.required is None else f"one {topology_request.required}"
    )
    yield f"No place for all {unschedulable.requested} of the gang in {level}"
    grouped = itertools.groupby(unschedulable.shortages, key=lambda shortage: shortage.fits)
    for fits, shortages in itertools.islice(grouped, _MAX_DOMAINS):
        names = [topology.describe(topology_request, shortage.domain) for shortage in shortages]
        more = f" and {len(names) - _MAX_DOMAINS} more" if len(names) > _MAX_DOMAINS else ""
        listed = ", ".join(names[:_MAX_DOMAINS])
        yield f"{listed}{more}: at most {fits} of {unschedulable.requested}"
    if unschedulable.shortages and unschedulable.shortages[0].rejections:
        best = unschedulable.shortages[0]
        why = of_one.unschedulable(allocator_types.Unschedulable(rejections=best.rejections))
        yield f"Then, in {topology.describe(topology_request, best.domain)}: {why}"
    if unschedulable.unlabelled:
        yield f"{len(unschedulable.unlabelled)} nodes left out for a label that they lack"

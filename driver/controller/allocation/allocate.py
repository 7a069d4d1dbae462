"""allocate: values in, a Placement or a NoFit out. Pure; `commit` is the only mutation (D4)."""

from collections import Counter
from dataclasses import dataclass

from driver import reasons
from driver.controller import view as cluster
from driver.controller.allocation import nodefit, outcome, requests, search
from driver.controller.allocation.policies import base
from driver.resources import claims, nodes


@dataclass(frozen=True, slots=True)
class _Fit:
    """One node that does, with its score; compared as (score, fewest free, lowest name)."""

    candidate: base.Candidate
    picks: tuple[outcome.Pick, ...]
    steps: int


def allocate(
    view: cluster.ClusterView, workload: outcome.Workload, policy: base.Policy
) -> outcome.Placement | outcome.NoFit:
    """Choose a node and devices for a pod's open claims."""
    asked: list[requests.Resolved] = []
    for claim in workload.open:
        resolved = requests.resolve(view, claim)
        if isinstance(resolved, outcome.NoFit):
            return resolved
        asked.extend(resolved)
    fits: list[_Fit] = []
    refusals: list[outcome.NodeRefusal] = []
    steps = 0
    for _, node in sorted(view.nodes.items()):
        answer = _try_node(view, node, workload, asked)
        if isinstance(answer, _Fit):
            fits.append(answer)
            steps += answer.steps
        elif answer is not None:
            refusals.append(answer)
    if not fits:
        return outcome.NoFit(nodes=tuple(refusals), steps=steps)
    best = min(fits, key=lambda fit: _rank(fit, policy))
    return outcome.Placement(best.candidate.node, best.picks, policy.explain(best.candidate), steps)


def _rank(fit: _Fit, policy: base.Policy) -> tuple[int, int, str]:
    candidate = fit.candidate
    return -policy.score(candidate), candidate.free, candidate.node


def _try_node(
    view: cluster.ClusterView,
    node: nodes.Node,
    workload: outcome.Workload,
    asked: list[requests.Resolved],
) -> _Fit | outcome.NodeRefusal | None:
    """A fit, a refusal, or None for a node that has no devices of ours at all."""
    if not any(pool.driver == view.driver and pool.reaches(node) for pool in view.pools):
        return None
    refused = nodefit.refusal(view, node, workload)
    if refused is not None:
        return refused
    offers = [requests.offer(view, node, resolved) for resolved in asked]
    slots: list[list[claims.DeviceId]] = []
    owners: list[requests.Resolved] = []
    for resolved, offer in zip(asked, offers, strict=True):
        count = _count(resolved.request, offer)
        slots.extend([offer.devices] * count)
        owners.extend([resolved] * count)
    found = search.match(slots)
    if found.filled < len(slots):
        return _short(node, offers, found.filled, len(slots))
    picks = tuple(
        outcome.Pick(owner.claim.key, owner.request, device)
        for owner, device in zip(owners, found.devices, strict=True)
        if device is not None
    )
    return _Fit(_candidate(view, node, picks), picks, found.steps)


def _count(request: claims.Request, offer: requests.Offer) -> int:
    """How many devices are wanted; All wants every one that matches, and at least one."""
    if not request.everything:
        return request.count
    mismatched = offer.refused[reasons.Reason.SELECTOR_MISMATCH]
    return max(len(offer.devices) + offer.refused.total() - mismatched, 1)


def _short(
    node: nodes.Node, offers: list[requests.Offer], filled: int, wanted: int
) -> outcome.NodeRefusal:
    counted: Counter[reasons.Reason] = Counter()
    for offer in offers:
        counted |= offer.refused
    return outcome.NodeRefusal(node.name, fits=filled, wanted=wanted, devices=counted)


def _candidate(
    view: cluster.ClusterView, node: nodes.Node, picks: tuple[outcome.Pick, ...]
) -> base.Candidate:
    total = free = 0
    for pool in view.pools:
        if pool.driver != view.driver:
            continue
        for one in pool.slices:
            if not cluster.reaches(one, node):
                continue
            total += len(one.devices)
            free += sum(
                1
                for device in one.devices
                if claims.DeviceId(pool.driver, pool.name, device.name) not in view.taken
            )
    return base.Candidate(node.name, tuple(pick.device for pick in picks), free, total)

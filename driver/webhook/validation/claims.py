"""A claim, template or class, whole: what is certainly wrong with it, and what may be. Pure.

Certain is what Prepare would refuse whatever device the claim gets. A claim is never refused for
what the cluster happens to have: hardware comes and goes, and claims may wait for it.
"""

from dataclasses import replace

from driver import errors, names
from driver.resources import fields
from driver.resources.dra import device_classes
from driver.scheduling.allocator.policies import ranking
from driver.webhook import admission_review
from driver.webhook.validation import configs, mps, opaque
from driver.webhook.validation.opaque import Findings

NOTHING = Findings()


def check(
    kind: admission_review.ObjectKind, obj: fields.Raw, known: configs.ClusterFacts
) -> Findings:
    """What there is to say of an object; nothing of kinds that hold no configuration."""
    try:
        part = opaque.claim_part(kind, obj)
        found = NOTHING if part is None else _check(part, known)
        unordered = _policies(obj) if part is not None and part.is_class else ()
    except errors.BadInput as problem:
        return Findings((str(problem),))
    return replace(found, problems=(*unordered, *found.problems))


def _policies(obj: fields.Raw) -> tuple[str, ...]:
    """What is wrong with the policies that a class orders: its claims would never be decided."""
    words = device_classes.policies(obj)
    try:
        ranking.parse_policies(words or "")
    except errors.BadInput as problem:
        at = f"metadata.annotations[{names.POLICIES_ANNOTATION}]"
        return (str(errors.BadInput(at, problem.problem, problem.expected)),)
    return ()


def _check(part: opaque.ConfigPart, known: configs.ClusterFacts) -> Findings:
    doubled = tuple(opaque.without_duplicates(part, known.driver))
    brought, problems = opaque.read(part, known.driver)
    if doubled or problems:
        return Findings((*doubled, *problems))
    if part.is_class:
        found, outcomes = configs.evaluate_class(part.raw, brought, known)
        return Findings(found.problems, (*found.warnings, *configs.check_limits(outcomes, known)))
    found, outcomes = configs.evaluate_claim(configs.parse_requests(part), brought, known)
    if found.problems:
        return found
    served = mps.check(outcomes)
    told = (*found.warnings, *served.warnings, *configs.check_limits(outcomes, known))
    return Findings(served.problems, told)

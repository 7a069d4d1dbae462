"""A claim, template or class, whole: what is certainly wrong with it, and what may be. Pure.

Certain is what Prepare would refuse whatever device the claim gets. A claim is never refused for
what the cluster happens to have: hardware comes and goes, and claims may wait for it.
"""

from dataclasses import replace

from driver import errors, names
from driver.controller.admission import configs, daemons, documents, review
from driver.controller.admission.documents import Findings
from driver.controller.allocation import ranking
from driver.resources import classes, fields

NOTHING = Findings()


def check(kind: review.Kind, obj: fields.Raw, known: configs.Known) -> Findings:
    """What there is to say of an object; nothing of kinds that hold no configuration."""
    try:
        part = documents.part_of(kind, obj)
        found = NOTHING if part is None else _check(part, known)
        unordered = _policies(obj) if part is not None and part.is_class else ()
    except errors.BadInput as problem:
        return Findings((str(problem),))
    return replace(found, problems=(*unordered, *found.problems))


def _policies(obj: fields.Raw) -> tuple[str, ...]:
    """What is wrong with the policies that a class orders: its claims would never be decided."""
    words = classes.policies(obj)
    try:
        ranking.of(words or "")
    except errors.BadInput as problem:
        at = f"metadata.annotations[{names.POLICIES_ANNOTATION}]"
        return (str(errors.BadInput(at, problem.problem, problem.expected)),)
    return ()


def _check(part: documents.Part, known: configs.Known) -> Findings:
    doubled = tuple(documents.unrepeated(part, known.driver))
    brought, problems = documents.read(part, known.driver)
    if doubled or problems:
        return Findings((*doubled, *problems))
    if part.is_class:
        found, outcomes = configs.of_class(part.raw, brought, known)
        return Findings(found.problems, (*found.warnings, *configs.limits(outcomes, known)))
    found, outcomes = configs.of_claim(configs.requests(part), brought, known)
    if found.problems:
        return found
    served = daemons.check(outcomes)
    told = (*found.warnings, *served.warnings, *configs.limits(outcomes, known))
    return Findings(served.problems, told)

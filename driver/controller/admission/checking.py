"""A claim, template or class, whole: what is certainly wrong with it, and what may be. Pure.

Certain is what Prepare would refuse whatever device the claim gets. A claim is never refused for
what the cluster happens to have: hardware comes and goes, and claims may wait for it.
"""

from driver import errors
from driver.controller.admission import configs, daemons, documents, review
from driver.controller.admission.documents import Findings
from driver.resources import fields

NOTHING = Findings()


def check(kind: review.Kind, obj: fields.Raw, known: configs.Known) -> Findings:
    """What there is to say of an object; nothing of kinds that hold no configuration."""
    try:
        part = documents.part_of(kind, obj)
        return NOTHING if part is None else _check(part, known)
    except errors.BadInput as problem:
        return Findings((str(problem),))


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

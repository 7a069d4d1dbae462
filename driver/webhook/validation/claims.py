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
    kind: admission_review.ObjectKind, obj: fields.Raw, cluster_facts: configs.ClusterFacts
) -> Findings:
    """Return the findings on an object; none for kinds without configuration."""
    try:
        part = opaque.claim_part(kind, obj)
        findings = NOTHING if part is None else _check(part, cluster_facts)
        is_class = part is not None and part.is_class
        unordered = _policies(obj) if is_class else ()
        unconverted = _label(obj) if is_class else ()
    except errors.BadInput as problem:
        return Findings((str(problem),))
    return replace(
        findings,
        problems=(*unordered, *findings.problems),
        warnings=(*unconverted, *findings.warnings),
    )


def _label(obj: fields.Raw) -> tuple[str, ...]:
    """Return a warning of a label that says neither that pods are converted nor that not."""
    value = device_classes.convert_label(obj)
    if value in {None, "true", "false"}:
        return ()
    path = f"metadata.labels[{names.CONVERT_LABEL}]"
    problem = f"is {value!r}, so pods that request the class are not converted"
    return (str(errors.BadInput(path, problem, "true")),)


def _policies(obj: fields.Raw) -> tuple[str, ...]:
    """Return what is wrong with a class's policies: its claims would never be allocated."""
    words = device_classes.policies(obj)
    try:
        ranking.parse_policies(words or "")
    except errors.BadInput as problem:
        path = f"metadata.annotations[{names.POLICIES_ANNOTATION}]"
        return (str(errors.BadInput(path, problem.problem, problem.expected)),)
    return ()


def _check(part: opaque.ConfigPart, cluster_facts: configs.ClusterFacts) -> Findings:
    doubled = tuple(opaque.without_duplicates(part, cluster_facts.driver))
    brought, problems = opaque.read(part, cluster_facts.driver)
    if doubled or problems:
        return Findings((*doubled, *problems))
    if part.is_class:
        findings, outcomes = configs.evaluate_class(part.raw, brought, cluster_facts)
        return Findings(
            findings.problems, (*findings.warnings, *configs.check_limits(outcomes, cluster_facts))
        )
    findings, outcomes = configs.evaluate_claim(
        configs.parse_requests(part), brought, cluster_facts
    )
    if findings.problems:
        return findings
    served = mps.check(outcomes)
    message = (*findings.warnings, *served.warnings, *configs.check_limits(outcomes, cluster_facts))
    return Findings(served.problems, message)

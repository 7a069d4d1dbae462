"""Checks that Ration's components have one version and the rights they need."""

from collections.abc import Iterator, Mapping
from typing import Final

from driver.cli.doctor.checks import facts, findings
from driver.resources import fields

COMPONENT: Final = "app.kubernetes.io/component"
_DRA = "resource.k8s.io"
_ALL = ("controller", "kubeletplugin", "mps", "admission")
NEEDED: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "controller": (
        *((_DRA, "resourceclaims", verb) for verb in ("list", "watch", "patch")),
        (_DRA, "resourceclaims/status", "patch"),
        (_DRA, "resourceclaims/binding", "patch"),
        *((_DRA, kind, "list") for kind in ("resourceslices", "deviceclasses")),
        *(("", kind, "list") for kind in ("pods", "nodes")),
        ("events.k8s.io", "events", "create"),
    ),
    "kubeletplugin": (
        *((_DRA, "resourceslices", verb) for verb in ("list", "create", "update", "delete")),
        (_DRA, "resourceclaims", "get"),
        (_DRA, "resourceclaims/status", "patch"),
        ("", "nodes", "get"),
        ("events.k8s.io", "events", "create"),
    ),
}
"""Without each of these a component does not work: group, resource and verb."""


def versions(seen: facts.Facts) -> Iterator[findings.Finding]:
    """All pods of the chart run one image."""
    if isinstance(seen.pods, facts.Unreadable):
        return  # `pods` has told
    by_image: dict[str, set[str]] = {}
    for pod in seen.pods:
        component = facts.labels(pod).get(COMPONENT, "")
        for _, container in fields.objects(fields.mapping(pod, "spec"), "containers"):
            if component in _ALL:
                by_image.setdefault(fields.text(container, "image"), set()).add(component)
    if len(by_image) > 1:
        message = "; ".join(
            f"{pod}: {', '.join(sorted(by_image[pod]))}" for pod in sorted(by_image)
        )
        fix = f"an upgrade goes on, or got stuck: kubectl -n {seen.namespace} get pods"
        text = f"components are of several images: {message}"
        yield findings.Finding("versions", findings.State.WRONG, text, fix)
    elif by_image:
        (image,) = by_image
        text = f"all components are of image {image}"
        yield findings.Finding("versions", findings.State.FINE, text)


def rights(seen: facts.Facts) -> Iterator[findings.Finding]:
    """The accounts of the components have the rights that these cannot do without."""
    if isinstance(seen.given, facts.Unreadable):
        text = f"not looked at: {findings.unreadable_finding('rights', seen.given).message}"
        yield findings.Finding("rights", findings.State.NOTE, text)
        return
    missing = [right for right in seen.given if not right.given]
    for right in missing:
        who = f"system:serviceaccount:{seen.namespace}:{right.account}"
        text = f"{right.component} may not {right.right}"
        fix = f"helm upgrade puts its ClusterRole back; {right.right.question} --as {who}"
        yield findings.Finding("rights", findings.State.WRONG, text, fix)
    if seen.given and not missing:
        components = sorted({right.component for right in seen.given})
        text = f"{' and '.join(components)} may do what they have to"
        yield findings.Finding("rights", findings.State.FINE, text)

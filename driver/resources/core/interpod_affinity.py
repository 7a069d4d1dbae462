"""Pod affinity and anti-affinity (core/v1): the terms of a pod, with defaults filled in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from driver.resources import fields
from driver.resources.core import label_selectors

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Term:
    """Pods of some namespaces and labels, counted together by the values of a node label.

    `namespaces` holds the pod's own where the term names none and has no `namespaceSelector`.
    A selector of None matches nothing.
    """

    topology_key: str
    selector: label_selectors.LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: label_selectors.LabelSelector | None = None

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Tell whether a pod is selected; `namespace_labels` are those of its namespace."""
        if self.selector is None or not self.reaches(namespace, namespace_labels):
            return False
        return self.selector.matches(labels)

    def reaches(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        """Tell whether pods of a namespace may be selected."""
        if namespace in self.namespaces:
            return True
        chosen = self.namespace_selector
        return chosen is not None and chosen.matches(namespace_labels)


@dataclass(frozen=True, slots=True)
class Preference:
    """A preferred term and its weight, 1 to 100."""

    weight: int
    term: Term


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """The terms of a pod; `anti` keeps pods apart."""

    required: tuple[Term, ...] = ()
    anti: tuple[Term, ...] = ()
    preferred: tuple[Preference, ...] = ()
    preferred_anti: tuple[Preference, ...] = ()


NONE = PodAffinity()


def parse(spec: fields.Raw, namespace: str) -> PodAffinity:
    """Read `spec.affinity` of a pod in a namespace."""
    affinity = fields.mapping(spec, "affinity", "spec")
    if not affinity.get("podAffinity") and not affinity.get("podAntiAffinity"):
        return NONE
    base = "spec.affinity"
    near, apart = (
        fields.mapping(affinity, kind, base) for kind in ("podAffinity", "podAntiAffinity")
    )
    return PodAffinity(
        required=tuple(_terms(near, f"{base}.podAffinity", namespace)),
        anti=tuple(_terms(apart, f"{base}.podAntiAffinity", namespace)),
        preferred=tuple(_preferences(near, f"{base}.podAffinity", namespace)),
        preferred_anti=tuple(_preferences(apart, f"{base}.podAntiAffinity", namespace)),
    )


def _terms(obj: fields.Raw, prefix: str, namespace: str) -> Iterator[Term]:
    for path, term in fields.objects(obj, _REQUIRED, prefix):
        yield _term(term, path, namespace)


def _preferences(obj: fields.Raw, prefix: str, namespace: str) -> Iterator[Preference]:
    for path, entry in fields.objects(obj, _PREFERRED, prefix):
        term = fields.mapping(entry, "podAffinityTerm", path)
        weight = fields.integer(entry, "weight", path)
        yield Preference(weight, _term(term, f"{path}.podAffinityTerm", namespace))


def _term(obj: fields.Raw, prefix: str, namespace: str) -> Term:
    named = fields.texts(obj, "namespaces", prefix)
    chosen = label_selectors.parse(obj, "namespaceSelector", prefix)
    own = () if named or chosen is not None else (namespace,)
    return Term(
        topology_key=fields.text(obj, "topologyKey", prefix),
        selector=label_selectors.parse(obj, "labelSelector", prefix),
        namespaces=frozenset((*named, *own)),
        namespace_selector=chosen,
    )

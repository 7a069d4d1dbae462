"""PodDisruptionBudgets (policy/v1), as far as it takes to know which pods may be evicted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from driver import ids
from driver.resources import fields
from driver.resources.core import node_selectors, pods


@dataclass(frozen=True, slots=True)
class Budget:
    """How many of the pods that it selects may be evicted now.

    `allowed` is its status.disruptionsAllowed; 0 where its status is of an older generation, as the
    API server refuses evictions then. What `spec.unhealthyPodEvictionPolicy` allows of pods that
    are not ready comes on top and is not counted here: a pod that is not ready draws as well.
    `selects` is None where nothing is selected; without requirements every pod of the namespace is.
    """

    namespace: str
    name: str
    selects: tuple[node_selectors.Expression, ...] | None
    allowed: int

    @property
    def key(self) -> ids.Key:
        """`namespace/name`."""
        return ids.Key(f"{self.namespace}/{self.name}")

    def covers(self, pod: pods.Pod) -> bool:
        """Whether evicting a pod draws on it.

        One that has not started yet is evicted whatever its budgets say (the API server's
        `canIgnorePDB`), so nothing guards it.
        """
        if pod.namespace != self.namespace or self.selects is None or pod.phase == "Pending":
            return False
        return all(one.is_satisfied(pod.labels.get(one.key)) for one in self.selects)


def parse(obj: fields.Raw) -> Budget:
    """Read a PodDisruptionBudget."""
    meta = fields.mapping(obj, "metadata")
    spec = fields.mapping(obj, "spec")
    status = fields.mapping(obj, "status")
    seen = fields.integer(status, "observedGeneration", "status")
    known = seen >= fields.integer(meta, "generation", "metadata")
    allowed = fields.integer(status, "disruptionsAllowed", "status")
    return Budget(
        namespace=fields.text(meta, "namespace", "metadata"),
        name=fields.required_text(meta, "name", "metadata"),
        selects=None if spec.get("selector") is None else _requirements(spec),
        allowed=max(allowed, 0) if known else 0,
    )


def _requirements(spec: fields.Raw) -> tuple[node_selectors.Expression, ...]:
    at = "spec.selector"
    selector = fields.mapping(spec, "selector", "spec")
    named = fields.text_map(selector, "matchLabels", at)
    equal = [node_selectors.Expression(key, "In", (value,)) for key, value in sorted(named.items())]
    return (*equal, *node_selectors.parse_expressions(selector, "matchExpressions", at))


class BudgetIndex:
    """Which budgets guard which pod."""

    def __init__(self, found: Iterable[Budget]) -> None:
        self._of: dict[str, list[Budget]] = {}
        for one in sorted(found, key=lambda one: one.name):
            self._of.setdefault(one.namespace, []).append(one)

    def pod_budgets(self, pod: pods.Pod) -> Sequence[Budget]:
        """By name. The API server evicts no pod that more than one guards."""
        return [one for one in self._of.get(pod.namespace, ()) if one.covers(pod)]

    @property
    def allowed(self) -> Mapping[ids.Key, int]:
        """Of each the evictions that it allows."""
        return {one.key: one.allowed for found in self._of.values() for one in found}

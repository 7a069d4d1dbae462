"""PodDisruptionBudgets (policy/v1), as far as it takes to know which pods may be evicted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from driver import ids
from driver.resources import fields
from driver.resources.core import node_selectors, pods


@dataclass(frozen=True, slots=True)
class Budget:
    """Number of the selected pods that may be evicted now.

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
        """Return whether evicting a pod draws on the budget.

        A pod that has not started is evicted whatever its budgets say (the API server's
        `canIgnorePDB`), so no budget covers it.
        """
        if pod.namespace != self.namespace or self.selects is None or pod.phase == "Pending":
            return False
        return all(
            expression.is_satisfied(pod.labels.get(expression.key)) for expression in self.selects
        )


def parse(obj: fields.Raw) -> Budget:
    """Read a PodDisruptionBudget."""
    meta = fields.mapping(obj, "metadata")
    spec = fields.mapping(obj, "spec")
    status = fields.mapping(obj, "status")
    seen = fields.integer(status, "observedGeneration", "status")
    observed = seen >= fields.integer(meta, "generation", "metadata")
    allowed = fields.integer(status, "disruptionsAllowed", "status")
    return Budget(
        namespace=fields.text(meta, "namespace", "metadata"),
        name=fields.required_text(meta, "name", "metadata"),
        selects=None if spec.get("selector") is None else _requirements(spec),
        allowed=max(allowed, 0) if observed else 0,
    )


def _requirements(spec: fields.Raw) -> tuple[node_selectors.Expression, ...]:
    path = "spec.selector"
    selector = fields.mapping(spec, "selector", "spec")
    named = fields.text_map(selector, "matchLabels", path)
    equal = [node_selectors.Expression(key, "In", (value,)) for key, value in sorted(named.items())]
    return (*equal, *node_selectors.parse_expressions(selector, "matchExpressions", path))


class BudgetIndex:
    """Budgets by the pods that they cover."""

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self._of: dict[str, list[Budget]] = {}
        for budget in sorted(budgets, key=lambda budget: budget.name):
            self._of.setdefault(budget.namespace, []).append(budget)

    def pod_budgets(self, pod: pods.Pod) -> Sequence[Budget]:
        """Return a pod's budgets by name. The API server evicts no pod with more than one."""
        return [budget for budget in self._of.get(pod.namespace, ()) if budget.covers(pod)]

    @property
    def allowed(self) -> Mapping[ids.Key, int]:
        """Return the evictions that each budget allows."""
        return {budget.key: budget.allowed for budgets in self._of.values() for budget in budgets}

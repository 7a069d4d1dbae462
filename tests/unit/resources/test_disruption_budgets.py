from dataclasses import replace
from typing import Any

import pytest

from driver import errors
from driver.resources import disruption_budgets
from tests.support.builders import objects

RUNNING = {"phase": "Running"}


def a_budget(
    selector: Any, allowed: int = 1, seen: int = 1, name: str = "web"
) -> disruption_budgets.Budget:
    return disruption_budgets.parse(
        {
            "metadata": {"namespace": "default", "name": name, "generation": 1},
            "spec": {"selector": selector},
            "status": {"disruptionsAllowed": allowed, "observedGeneration": seen},
        }
    )


def guards(selector: Any, **labels: str) -> bool:
    pod = replace(objects.pod(status=RUNNING), labels=labels)
    return a_budget(selector).covers(pod)


def test_labels_and_expressions_hold_together() -> None:
    selector = {
        "matchLabels": {"app": "a"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}],
    }
    assert guards(selector, app="a")
    assert not guards(selector, app="a", tier="x")
    assert not guards(selector, app="b")


def test_an_empty_selector_is_every_pod_and_none_is_no_pod() -> None:
    assert guards({})
    assert not guards(None)


def test_a_pod_elsewhere_or_not_started_is_not_guarded() -> None:
    budget = a_budget({})
    assert not budget.covers(replace(objects.pod(status=RUNNING), namespace="other"))
    assert not budget.covers(objects.pod())


def test_a_status_of_an_older_generation_allows_nothing() -> None:
    assert a_budget({}, allowed=3).allowed == 3
    assert a_budget({}, allowed=3, seen=0).allowed == 0
    assert a_budget({}, allowed=-1).allowed == 0


def test_the_budgets_of_a_pod_come_by_name() -> None:
    budget_index = disruption_budgets.BudgetIndex(
        [a_budget({}, name="b"), a_budget({}, name="a", allowed=2)]
    )
    assert [
        pod_budget.name for pod_budget in budget_index.pod_budgets(objects.pod(status=RUNNING))
    ] == ["a", "b"]
    assert budget_index.allowed == {"default/a": 2, "default/b": 1}


def test_a_field_of_another_type_is_told_with_its_path() -> None:
    with pytest.raises(errors.BadInput, match=r"spec\.selector\.matchExpressions\[0\]\.key"):
        a_budget({"matchExpressions": [{"operator": "Exists"}]})

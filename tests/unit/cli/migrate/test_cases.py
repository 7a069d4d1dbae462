from typing import Any

import pytest

from driver.api import offerings
from driver.cli.migrate import plan, render
from driver.cli.migrate.findings import SettingFate
from tests.support import migrate_cases

EACH = pytest.mark.parametrize("case", migrate_cases.CASES, ids=lambda case: case.name)


def told(made: plan.Plan, fate: SettingFate) -> set[str]:
    within = {
        f"{one.name}: {f.path}" for one in made.configs for f in one.findings if f.fate is fate
    }
    return within | {f"-: {f.path}" for f in made.notes if f.fate is fate}


def listed(made: plan.Plan) -> list[Any]:
    return list(render.manifests(made))


def test_there_are_twenty_old_configurations() -> None:
    assert len(migrate_cases.CASES) >= 20


@EACH
def test_the_gpus_are_offered_as_they_were(case: migrate_cases.Case) -> None:
    made = case.plan()
    found = {
        one.name: [plan.rule_document(rule) for rule in one.offer.rules] for one in made.configs
    }
    assert found == case.expected["offers"]
    document = render.offerings_document(made)
    assert document["rules"] == case.expected["offerings"]
    assert offerings.read(document, "offerings").rules == made.rules


@EACH
def test_what_pods_ask_for_has_its_class(case: migrate_cases.Case) -> None:
    made = case.plan()
    assert {one.resource: one.name for one in made.replacements} == case.expected["resources"]
    manifests = [one["metadata"]["name"] for one in listed(made)]
    assert manifests == case.expected.get("deviceClasses", [])


@EACH
@pytest.mark.parametrize("fate", [SettingFate.UNKNOWN, SettingFate.CHANGED, SettingFate.DROPPED])
def test_what_loses_its_meaning_is_told(case: migrate_cases.Case, fate: SettingFate) -> None:
    assert told(case.plan(), fate) == set(case.expected.get(fate.value, []))


@EACH
def test_the_values_say_the_same(case: migrate_cases.Case) -> None:
    made = case.plan()
    values = dict(made.values)
    plugin: Any = values.pop("kubeletPlugin")
    assert plugin["offerings"] == case.expected["offerings"]
    assert plugin.get("shareDomain") == case.expected.get("shareDomain")
    assert values.pop("mps") == {"nodeSelector": plugin["nodeSelector"]}
    flags = case.expected.get("webhookFlags", [])
    assert values.pop("admission", None) == ({"extraArgs": flags} if flags else None)
    assert values == case.expected.get("values", {})
    assert made.operator == case.expected.get("operator", False)


@EACH
def test_nodes_and_what_is_open_are_told(case: migrate_cases.Case) -> None:
    made = case.plan()
    assert [one.node.name for one in made.turns] == case.expected.get("order", [])
    wanted = case.expected.get("open", [])
    assert len(made.open) == len(wanted)
    assert all(any(words in one for one in made.open) for words in wanted)


@EACH
def test_the_text_names_every_setting_and_every_node(case: migrate_cases.Case) -> None:
    made = case.plan()
    text = render.plan_text(made)
    assert all(one.path in text and one.text in text for one in made.findings)
    assert all(f"kubectl cordon {one.node.name}" in text for one in made.turns)
    assert all(one.new_key in text for one in made.replacements)

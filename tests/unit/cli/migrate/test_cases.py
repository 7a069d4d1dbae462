from typing import Any

import pytest

from driver.api import offerings
from driver.cli.migrate import plan, render
from driver.cli.migrate.settings import SettingFate
from tests.support import migrate_cases

EACH = pytest.mark.parametrize("case", migrate_cases.CASES, ids=lambda case: case.name)


def told(created: plan.Plan, fate: SettingFate) -> set[str]:
    within = {
        f"{config.name}: {f.path}"
        for config in created.configs
        for f in config.findings
        if f.fate is fate
    }
    return within | {f"-: {f.path}" for f in created.notes if f.fate is fate}


def listed(created: plan.Plan) -> list[Any]:
    return list(render.manifests(created))


def test_there_are_twenty_old_configurations() -> None:
    assert len(migrate_cases.CASES) >= 20


@EACH
def test_the_gpus_are_offered_as_they_were(case: migrate_cases.Case) -> None:
    created = case.plan()
    result = {
        config.name: [plan.rule_document(rule) for rule in config.offer.rules]
        for config in created.configs
    }
    assert result == case.expected["offers"]
    document = render.offerings_document(created)
    assert document["rules"] == case.expected["offerings"]
    assert offerings.read(document, "offerings").rules == created.rules


@EACH
def test_requests_of_pods_have_a_class(case: migrate_cases.Case) -> None:
    created = case.plan()
    assert {
        replacement.resource: replacement.name for replacement in created.replacements
    } == case.expected["resources"]
    manifests = [entry["metadata"]["name"] for entry in listed(created)]
    assert manifests == case.expected.get("deviceClasses", [])


@EACH
@pytest.mark.parametrize("fate", [SettingFate.UNKNOWN, SettingFate.CHANGED, SettingFate.DROPPED])
def test_settings_without_an_equivalent_are_reported(
    case: migrate_cases.Case, fate: SettingFate
) -> None:
    assert told(case.plan(), fate) == set(case.expected.get(fate.value, []))


@EACH
def test_the_values_say_the_same(case: migrate_cases.Case) -> None:
    created = case.plan()
    values = dict(created.values)
    plugin: Any = values.pop("kubeletPlugin")
    assert plugin["offerings"] == case.expected["offerings"]
    assert plugin.get("shareDomain") == case.expected.get("shareDomain")
    assert values.pop("mps") == {"nodeSelector": plugin["nodeSelector"]}
    flags = case.expected.get("webhookFlags", [])
    assert values.pop("admission", None) == ({"extraArgs": flags} if flags else None)
    assert values == case.expected.get("values", {})
    assert created.operator == case.expected.get("operator", False)


@EACH
def test_nodes_and_what_is_open_are_told(case: migrate_cases.Case) -> None:
    created = case.plan()
    assert [turn.node.name for turn in created.turns] == case.expected.get("order", [])
    expected = case.expected.get("open", [])
    assert len(created.open) == len(expected)
    assert all(any(words in name for name in created.open) for words in expected)


@EACH
def test_the_text_names_every_setting_and_every_node(case: migrate_cases.Case) -> None:
    created = case.plan()
    text = render.plan_text(created)
    assert all(finding.path in text and finding.text in text for finding in created.findings)
    assert all(f"kubectl cordon {turn.node.name}" in text for turn in created.turns)
    assert all(replacement.new_key in text for replacement in created.replacements)

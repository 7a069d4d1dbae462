"""Every test that a page names as its proof exists, and every switch."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "docs" / "explanation" / f"{name}.md"
    for name in ("invariants", "testing", "threat-model")
]
MATURITY = (ROOT / "docs" / "reference" / "maturity.md").read_text().partition("\n## What works")[0]
VALUES = (ROOT / "docs" / "reference" / "values.md").read_text()
NAMED = {match for page in PAGES for match in re.findall(r"`(tests/\S+::\w+)`", page.read_text())}


@pytest.mark.parametrize("named", sorted(NAMED))
def test_the_test_that_is_named_exists(named: str) -> None:
    path, _, name = named.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[^`:]+)`", MATURITY))))
def test_the_tests_of_every_feature_exist(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    "value", sorted(set(re.findall(r"`((?:[a-z]\w+\.)+\w+|allocator|driverName)`", MATURITY)))
)
def test_every_feature_switch_is_a_chart_value(value: str) -> None:
    assert f"`{value}`" in VALUES


def test_every_invariant_names_the_campaigns_that_tried_to_break_it() -> None:
    page = (ROOT / "docs" / "explanation" / "invariants.md").read_text()
    names = {"fuzz", "oracle", "kills", "churn", "split brain", "chaos", "soak", "black box"}
    names |= {
        "rights",
        "upgrade",
        "Karpenter",
        "Kueue",
        "Prometheus",
        "real programs",
        "its test alone",
    }
    rows = [line.split(" | ") for line in page.splitlines() if re.match(r"\| \d+ \|", line)]
    assert len(rows) > 150
    for row in rows:
        assert set(row[-1].removesuffix(" |").split(", ")) <= names, row[0]

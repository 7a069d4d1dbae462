"""Tests that dashboards and alerts ask for existing metrics, labels and pages."""

import re

import promql_parser as promql
import pytest

from hack import exposed
from hack.chart import helm
from tests.support import expressions

DOCS = helm.ROOT / "docs" / "how-to"


@pytest.mark.parametrize(
    "asked", [*expressions.all_asked(), *expressions.documented()], ids=lambda one: one.where
)
def test_every_expression_asks_for_metrics_and_labels_that_are_there(
    asked: expressions.Asked,
) -> None:
    expressions.labels(promql.parse(asked.text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sum(dra_gpu_lost)", "there is no metric dra_gpu_lost"),
        ("sum by (gpu) (dra_gpu_healthy)", "has no label gpu"),
        ('dra_gpu_healthy{uuid="a"}', "dra_gpu_healthy has no label uuid"),
        ("dra_gpu_healthy / dra_gpu_plugin_slices", "never equal"),
        ("dra_gpu_healthy * on (UUID) group_left (serial) dra_gpu_info", "has no label serial"),
        ("histogram_quantile(0.5, sum(dra_gpu_mps_ready_seconds_bucket))", "has no label le"),
        ("rate(dra_gpu_mps_ready_seconds[5m])", "there is no metric"),
    ],
)
def test_an_expression_that_asks_for_what_is_not_there_is_found(text: str, words: str) -> None:
    with pytest.raises(expressions.Wrong, match=re.escape(words)):
        expressions.labels(promql.parse(text))


def test_every_variable_of_a_dashboard_is_declared_and_every_panel_says_its_unit() -> None:
    for path in expressions.DASHBOARDS.glob("*.json"):
        board = expressions.read(path)
        declared = {one["name"] for one in board["templating"]["list"]} | {"__rate_interval"}
        used = set(re.findall(r"\$\{?([a-z_]+)", path.read_text())) - {"__all"}
        assert used <= declared, path
        for panel in board["panels"]:
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_what_a_variable_offers_is_a_label_of_a_metric_that_is_there() -> None:
    offered = 0
    for path in expressions.DASHBOARDS.glob("*.json"):
        for one in expressions.read(path)["templating"]["list"]:
            if one["type"] == "query":
                found = re.fullmatch(r"label_values\((\w+), (\w+)\)", one["query"]["query"])
                assert found is not None
                assert found[2] in exposed.series()[found[1]]
                offered += 1
    assert offered == 3


def test_dashboards_have_uids_of_their_own_and_panels_do_not_lie_on_each_other() -> None:
    boards = [expressions.read(path) for path in sorted(expressions.DASHBOARDS.glob("*.json"))]
    assert len({one["uid"] for one in boards}) == len(boards) == 4
    for board in boards:
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])
            }
            assert not cells & taken, panel["title"]
            taken |= cells
            assert at["x"] + at["w"] <= 24


def test_every_alert_has_a_severity_words_and_a_section_that_says_what_to_do() -> None:
    page = (DOCS / "alerts.md").read_text()
    sections = {one.lower() for one in re.findall(r"^## (\w+)$", page, re.MULTILINE)}
    named = set()
    for alert in expressions.alerts():
        assert alert["labels"]["severity"] in {"critical", "warning"}
        notes = alert["annotations"]
        assert notes["summary"]
        assert notes["description"]
        url, _, anchor = notes["runbook_url"].partition("#")
        assert url == "https://ration.dev/docs/how-to/alerts/"
        assert anchor == alert["alert"].lower()
        named.add(anchor)
    assert named == sections

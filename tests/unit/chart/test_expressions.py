"""Tests that dashboards and alerts ask for existing metrics, labels and pages."""

import re

import promql_parser as promql
import pytest

from hack import exposed
from hack.chart import helm
from tests.support import expressions

DOCS = helm.ROOT / "docs" / "how-to"


@pytest.mark.parametrize(
    "query", [*expressions.all_asked(), *expressions.documented()], ids=lambda item: item.where
)
def test_every_expression_asks_for_metrics_and_labels_that_are_there(
    query: expressions.Asked,
) -> None:
    expressions.labels(promql.parse(query.text))


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
        declared = {entry["name"] for entry in board["templating"]["list"]} | {"__rate_interval"}
        used = set(re.findall(r"\$\{?([a-z_]+)", path.read_text())) - {"__all"}
        assert used <= declared, path
        for panel in board["panels"]:
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_dashboard_variables_use_existing_labels() -> None:
    offered = 0
    for path in expressions.DASHBOARDS.glob("*.json"):
        for entry in expressions.read(path)["templating"]["list"]:
            if entry["type"] == "query":
                match = re.fullmatch(r"label_values\((\w+), (\w+)\)", entry["query"]["query"])
                assert match is not None
                assert match[2] in exposed.series()[match[1]]
                offered += 1
    assert offered == 3


def test_dashboards_have_uids_of_their_own_and_panels_do_not_lie_on_each_other() -> None:
    boards = [expressions.read(path) for path in sorted(expressions.DASHBOARDS.glob("*.json"))]
    assert len({board["uid"] for board in boards}) == len(boards) == 4
    for board in boards:
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            grid_pos = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(grid_pos["x"], grid_pos["x"] + grid_pos["w"])
                for y in range(grid_pos["y"], grid_pos["y"] + grid_pos["h"])
            }
            assert not cells & taken, panel["title"]
            taken |= cells
            assert grid_pos["x"] + grid_pos["w"] <= 24


def test_every_alert_has_a_severity_words_and_a_section_that_says_what_to_do() -> None:
    page = (DOCS / "alerts.md").read_text()
    sections = {match.lower() for match in re.findall(r"^## (\w+)$", page, re.MULTILINE)}
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

"""The alerts by Prometheus' own tool, and as the chart installs them."""

import shutil
from pathlib import Path

import pytest
import yaml

from hack import prometheus
from hack.cluster import errors, shell
from tests.contract.chart import rendered
from tests.support import expressions

DATA = Path(__file__).parents[2] / "data" / "chart" / "alerts.yaml"


@pytest.fixture(scope="module")
def promtool() -> Path:
    try:
        return prometheus.program("promtool")
    except errors.ClusterError as error:
        pytest.skip(f"no promtool: {error}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(expressions.RULES, tmp_path / "rules.yaml")
    shutil.copy(DATA, tmp_path / "tests.yaml")
    return tmp_path


def test_prometheus_takes_the_rules_and_lints_nothing(promtool: Path, folder: Path) -> None:
    shell.run((str(promtool), "check", "rules", "--lint-fatal", str(folder / "rules.yaml")))


def test_each_alert_fires_when_it_should_and_not_before(promtool: Path, folder: Path) -> None:
    shell.run((str(promtool), "test", "rules", str(folder / "tests.yaml")))


def test_an_alert_that_says_nothing_fails_its_test(promtool: Path, folder: Path) -> None:
    rules = folder / "rules.yaml"
    rules.write_text(rules.read_text().replace("(dra_gpu_queue_starving) == 1", "(up) == 1"))
    with pytest.raises(errors.CommandFailedError, match="RationQueueStarving"):
        shell.run((str(promtool), "test", "rules", str(folder / "tests.yaml")))


def test_every_alert_has_a_test() -> None:
    assert [
        alert["alert"] for alert in expressions.alerts() if alert["alert"] not in DATA.read_text()
    ] == []


@rendered.BUILDS_HELM
def test_the_chart_installs_the_rules_as_they_are_with_its_own_address() -> None:
    flags = rendered.setting("prometheusRule.enabled=true", "prometheusRule.docs=https://a.b/c")
    (result,) = [obj for obj in rendered.objects(*flags) if obj["kind"] == "PrometheusRule"]
    text = expressions.RULES.read_text().replace("https://ration.dev/docs", "https://a.b/c")
    assert result["spec"] == yaml.safe_load(text)


@rendered.BUILDS_HELM
def test_the_chart_installs_the_dashboards_as_they_are() -> None:
    objects = rendered.objects(*rendered.setting("dashboards.enabled=true"))
    (boards,) = [obj for obj in objects if obj["metadata"]["name"].endswith("-dashboards")]
    assert boards["metadata"]["labels"]["grafana_dashboard"] == "1"
    retained = {
        f"ration-{path.name}": path.read_text() for path in expressions.DASHBOARDS.glob("*.json")
    }
    assert {name: text.rstrip() for name, text in boards["data"].items()} == {
        name: text.rstrip() for name, text in retained.items()
    }

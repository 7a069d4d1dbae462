"""Real Prometheus over every component while claims of all modes come and go.

RATION_CHURN_S is how long they do, 600 by default. Nothing that a dashboard or an alert asks for
may be missing, no alert may fire, and of the series of what came and went none may be left.
"""

import itertools
import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import promql_parser as promql
import pytest
from rich import console, table

from driver.api import crd
from driver.kube import client, gvr
from hack.chart import helm
from hack.cluster import api
from tests.e2e import playground, release, scraping
from tests.support import expressions

CHURN_S = float(os.environ.get("RATION_CHURN_S", "600"))
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(CHURN_S + 900)]
MOST = 24
"""Pods at once."""
PACE_S = 1.0
OURS = 'count({__name__=~"dra_gpu_.+"})'
COMPONENTS = {"controller", "admission", "kubeletplugin", "mps"}
QUEUE = "e2e-prometheus"
SHAPE = {
    "name": "unused",
    "labels": {"example.com/pool": "unused"},
    "taints": [{"key": "example.com/unused", "effect": "NoSchedule"}],
    "gpus": 8,
    "product": "NVIDIA H100 80GB HBM3",
    "memory": "80Gi",
    "allocatable": {"cpu": "190", "memory": "1900Gi", "pods": "250"},
}
"""Nodes on demand that no pod here tolerates: their metrics are served, and none is requested."""
VALUES = {
    "controller": {
        "nodes": {"enabled": True, "shapes": [SHAPE]},
        "managedDrivers": [{"name": "gpu.example.com"}],
    }
}
"""With a driver that no node has: its rules are counted, and none of its devices is allocated."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[api.Cluster]:
    values = tmp_path_factory.mktemp("values") / "nodes.json"
    values.write_text(json.dumps(VALUES))
    with release.a_cluster() as cluster:
        release.install(f"--values={values}")
        playground.until(lambda: not terminating(cluster), 120, "the pods of before are gone")
        try:
            yield cluster
        finally:
            release.install()


def terminating(cluster: api.Cluster) -> list[str]:
    text = cluster.kubectl("get", "pods", "-n", helm.NAMESPACE, "--output=json")
    metadata = [pod["metadata"] for pod in json.loads(text)["items"]]
    return [pod["name"] for pod in metadata if "deletionTimestamp" in pod]


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    ground = playground.Playground.open(cluster, kube)
    ground.create(*(release.a_template(mode) for mode in release.MODES))
    ground.create(playground.a_template("too-many", 17))
    try:
        yield ground
    finally:
        ground.close()


@pytest.fixture
def watch(cluster: api.Cluster, tmp_path: Path) -> Iterator[scraping.Prometheus]:
    with scraping.running(cluster, tmp_path) as prometheus:
        playground.until(lambda: _all_read(cluster, prometheus), 90, "every component is read")
        yield prometheus


def _all_read(cluster: api.Cluster, watch: scraping.Prometheus) -> bool:
    results = watch.ask('up{job="ration"} == 1')
    components = {result["metric"]["app_kubernetes_io_component"] for result in results}
    pods = cluster.kubectl("get", "pods", "-n", helm.NAMESPACE, "--output=name").split()
    return components == COMPONENTS and len(results) == len(pods)


class Churn:
    """Pods of every mode, the oldest of which goes when there are too many."""

    def __init__(self, field: playground.Playground) -> None:
        self._field = field
        self._there: list[str] = []
        self._numbers = itertools.count()
        self._chance = random.Random(20261122)  # noqa: S311 - which pod, no secret
        self.made = 0

    def step(self) -> None:
        """One comes; one may go."""
        mode = self._chance.choice(release.MODES)
        name = f"{mode}-{next(self._numbers)}"
        self._field.create(release.a_pod(name, template=mode, command=_WORK[mode]))
        self._there.append(name)
        self.made += 1
        if len(self._there) > MOST:
            self._go(self._chance.randrange(len(self._there) // 2))

    def end(self) -> None:
        """All go."""
        while self._there:
            self._go(0)

    def _go(self, which: int) -> None:
        name = self._there.pop(which)
        self._field.kube.delete(gvr.PODS, name, self._field.namespace)


_HOLD = "simclient --allocate 1Gi --hold forever"
_WORK = dict.fromkeys(release.MODES, _HOLD)


def a_queue(field: playground.Playground) -> None:
    """One that has a limit, and the namespace's pods."""
    spec = {
        "members": [{"namespace": field.namespace}],
        "deserved": {"gpus": "8"},
        "limit": {"gpus": "16"},
    }
    body = {"apiVersion": crd.VERSION, "kind": "Queue", "metadata": {"name": QUEUE}, "spec": spec}
    field.kube.create(gvr.QUEUES, body)


def test_under_churn_nothing_is_missing_no_alert_fires_and_no_series_is_left(
    field: playground.Playground, watch: scraping.Prometheus
) -> None:
    previous = watch.number(OURS)
    began = time.time()
    a_queue(field)
    field.create(release.a_pod("never", template="too-many"))
    churn, most = Churn(field), 0.0
    while time.time() - began < CHURN_S:
        churn.step()
        most = max(most, watch.number(OURS))
        time.sleep(PACE_S)
    lacking = missing(watch, began)
    churn.end()
    field.kube.delete(gvr.PODS, "never", field.namespace)
    field.kube.delete(gvr.QUEUES, QUEUE)
    playground.until(lambda: not field.claims(), 120, "all claims are gone")
    playground.until(lambda: watch.number(OURS) <= previous, 90, "the series are as at first")
    fired = alerts(watch, began)
    report(watch, churn.made, (previous, most, watch.number(OURS)))
    assert lacking == []
    assert fired == []
    assert watch.number(OURS) == previous
    assert most <= previous + (MOST + 2) * 9 + 200
    assert watch.over("up == 0", began) == []
    assert [name for name, error in watch.targets().items() if error] == []


def missing(watch: scraping.Prometheus, since: float) -> list[str]:
    """Return what is asked for and was not there once, and what cannot be evaluated."""
    names: set[str] = set()
    for entry in expressions.all_asked():
        watch.over(entry.text, since)
        expected = (str(selector) for selector in expressions.selectors(promql.parse(entry.text)))
        names |= {f"{entry.where}: {name}" for name in expected if not watch.over(name, since)}
    return sorted(names)


def alerts(watch: scraping.Prometheus, since: float) -> list[str]:
    """Return those that fired."""
    over = watch.over('ALERTS{alertstate="firing"}', since)
    return sorted({str(entry["metric"]) for entry in over})


def report(watch: scraping.Prometheus, number: int, counts: tuple[float, float, float]) -> None:
    """Print the observations as a table."""
    shown = table.Table(title=f"{number} pods in {CHURN_S:.0f} s")
    for name in ("component", "targets", "series", "scrape s, 99 %"):
        shown.add_column(name)
    for component in sorted(COMPONENTS):
        owner = f'{{app_kubernetes_io_component="{component}"}}'
        slow = f"quantile_over_time(0.99, scrape_duration_seconds{owner}[{CHURN_S:.0f}s])"
        shown.add_row(
            component,
            f"{watch.number(f'count(up{owner})'):.0f}",
            f"{watch.number(f'sum(scrape_samples_scraped{owner})'):.0f}",
            f"{watch.number(f'max({slow})'):.3f}",
        )
    previous, most, after = counts
    shown.add_row(
        "all of ours", "", f"{previous:.0f} before, {most:.0f} at most, {after:.0f} after", ""
    )
    request = [*expressions.all_asked()]
    shown.add_row("asked for", "", f"{len(request)} expressions", "")
    console.Console(width=110).print(shown)

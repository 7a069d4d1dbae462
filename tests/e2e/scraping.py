"""A real Prometheus beside the cluster: it finds the driver's pods as it would in production."""

import contextlib
import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from hack import prometheus
from hack.chart import helm
from hack.cluster import api
from tests import queries
from tests.e2e import playground

EVERY_S = 5
"""Between scrapes, and between looks at the alerts."""
_COMPONENT = "__meta_kubernetes_pod_label_app_kubernetes_io_component"


def configuration(cluster: api.Cluster, rules: Path) -> dict[str, Any]:
    """What the chart's ServiceMonitor makes of pods, and bounds on what one may say."""
    keep = [
        _keep("__meta_kubernetes_pod_label_app_kubernetes_io_name", "ration"),
        _keep("__meta_kubernetes_pod_container_port_name", "metrics"),
        _label("__meta_kubernetes_pod_node_name", "node"),
        _label("__meta_kubernetes_pod_name", "instance"),
        _label(_COMPONENT, "app_kubernetes_io_component"),
    ]
    job = {
        "job_name": "ration",
        "sample_limit": 5000,
        "label_limit": 30,
        "label_value_length_limit": 256,
        "kubernetes_sd_configs": [
            {
                "role": "pod",
                "kubeconfig_file": str(cluster.kubeconfig),
                "namespaces": {"names": [helm.NAMESPACE]},
            }
        ],
        "relabel_configs": keep,
    }
    every = {"scrape_interval": f"{EVERY_S}s", "evaluation_interval": f"{EVERY_S}s"}
    return {"global": every, "rule_files": [str(rules)], "scrape_configs": [job]}


def _keep(label: str, wanted: str) -> dict[str, Any]:
    return {"source_labels": [label], "regex": wanted, "action": "keep"}


def _label(source: str, target: str) -> dict[str, Any]:
    return {"source_labels": [source], "target_label": target}


class Prometheus:
    """One that runs; `ask` is its HTTP API."""

    def __init__(self, address: str) -> None:
        self._address = address

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def ask(self, expression: str) -> list[Any]:
        """Samples of now."""
        return list(self._get("query", query=expression)["result"])

    def number(self, expression: str) -> float:
        """The one sample's value; 0 without one."""
        found = self.ask(expression)
        return float(found[0]["value"][1]) if found else 0.0

    def over(self, expression: str, since: float) -> list[Any]:
        """Series from a moment until now; raises AssertionError where it cannot be evaluated."""
        start, end = f"{since:.0f}", f"{time.time():.0f}"
        return list(
            self._get("query_range", query=expression, start=start, end=end, step="15")["result"]
        )

    def targets(self) -> dict[str, str]:
        """The components that are read, with what is wrong; "" where nothing is."""
        found = self._get("targets", state="active")["activeTargets"]
        return {one["labels"]["instance"]: one["lastError"] for one in found}

    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            self._get("query", query="1")
        except OSError:
            return False
        return True


@contextlib.contextmanager
def running(cluster: api.Cluster, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus for as long as the block runs, with the chart's alerts."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    wanted = folder / "prometheus.yaml"
    wanted.write_text(yaml.safe_dump(configuration(cluster, queries.RULES)))
    command = (
        str(prometheus.program("prometheus")),
        f"--config.file={wanted}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    )
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    made = Prometheus(address)
    try:
        playground.until(made.is_up, 60, "Prometheus answers")
        yield made
    finally:
        process.terminate()
        process.wait(30)

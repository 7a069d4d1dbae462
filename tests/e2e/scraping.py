"""A real Prometheus beside the cluster, which reads the driver's pods and judges its alerts."""

import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from hack import prometheus
from hack.chart import helm
from hack.cluster import api
from tests.e2e import playground
from tests.support import expressions

EVERY_S = 5
"""Between scrapes, and between looks at the alerts."""
_PORT, _COMPONENT = "metrics", "app.kubernetes.io/component"


def targets(cluster: api.Cluster) -> list[dict[str, Any]]:
    """The driver's pods with a port for metrics, with the labels that a ServiceMonitor gives.

    Debian's Prometheus is built without discovery in Kubernetes, so they are told it in a file.
    """
    document = json.loads(cluster.kubectl("get", "pods", "-n", helm.NAMESPACE, "--output=json"))
    return [
        {
            "targets": [f"{item['status']['podIP']}:{port['containerPort']}"],
            "labels": {
                "instance": item["metadata"]["name"],
                "node": item["spec"]["nodeName"],
                "app_kubernetes_io_component": item["metadata"]["labels"][_COMPONENT],
            },
        }
        for item in document["items"]
        for container in item["spec"]["containers"]
        for port in container.get("ports", ())
        if port.get("name") == _PORT
    ]


def configuration(rules: Path, path: Path) -> dict[str, Any]:
    """Return what is read, with bounds on what one process may say."""
    job = {
        "job_name": "ration",
        "sample_limit": 5000,
        "label_limit": 30,
        "label_value_length_limit": 256,
        "file_sd_configs": [{"files": [str(path)]}],
    }
    every = {"scrape_interval": f"{EVERY_S}s", "evaluation_interval": f"{EVERY_S}s"}
    return {"global": every, "rule_files": [str(rules)], "scrape_configs": [job]}


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
        results = self.ask(expression)
        return float(results[0]["value"][1]) if results else 0.0

    def over(self, expression: str, since: float) -> list[Any]:
        """Series from a moment until now; raises AssertionError where it cannot be evaluated."""
        start, end = f"{since:.0f}", f"{time.time():.0f}"
        return list(
            self._get("query_range", query=expression, start=start, end=end, step="15")["result"]
        )

    def targets(self) -> dict[str, str]:
        """The components that are read, with what is wrong; "" where nothing is."""
        active_targets = self._get("targets", state="active")["activeTargets"]
        return {
            active_target["labels"]["instance"]: active_target["lastError"]
            for active_target in active_targets
        }

    def is_up(self) -> bool:
        """Return whether it is ready: until its store is open it answers 503 (`/-/ready`)."""
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=30):
                return True
        except OSError:
            return False


@contextlib.contextmanager
def running(cluster: api.Cluster, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus for as long as the block runs, with the chart's alerts."""
    with socket.socket() as result:
        result.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{result.getsockname()[1]}"
    path = folder / "prometheus.yaml"
    reported = folder / "targets.json"
    reported.write_text(json.dumps(targets(cluster)))
    path.write_text(yaml.safe_dump(configuration(expressions.RULES, reported)))
    command = (
        str(prometheus.program("prometheus")),
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    )
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    created = Prometheus(address)
    try:
        playground.until(created.is_up, 60, f"Prometheus answers ({folder / 'prometheus.log'})")
        yield created
    finally:
        process.terminate()
        process.wait(30)

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
    found = json.loads(cluster.kubectl("get", "pods", "-n", helm.NAMESPACE, "--output=json"))
    return [
        {
            "targets": [f"{one['status']['podIP']}:{port['containerPort']}"],
            "labels": {
                "instance": one["metadata"]["name"],
                "node": one["spec"]["nodeName"],
                "app_kubernetes_io_component": one["metadata"]["labels"][_COMPONENT],
            },
        }
        for one in found["items"]
        for container in one["spec"]["containers"]
        for port in container.get("ports", ())
        if port.get("name") == _PORT
    ]


def configuration(rules: Path, told: Path) -> dict[str, Any]:
    """Return what is read, with bounds on what one process may say."""
    job = {
        "job_name": "ration",
        "sample_limit": 5000,
        "label_limit": 30,
        "label_value_length_limit": 256,
        "file_sd_configs": [{"files": [str(told)]}],
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
        """Return whether it is ready: until its store is open it answers 503 (`/-/ready`)."""
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=30):
                return True
        except OSError:
            return False


@contextlib.contextmanager
def running(cluster: api.Cluster, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus for as long as the block runs, with the chart's alerts."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    wanted = folder / "prometheus.yaml"
    told = folder / "targets.json"
    told.write_text(json.dumps(targets(cluster)))
    wanted.write_text(yaml.safe_dump(configuration(expressions.RULES, told)))
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
        playground.until(made.is_up, 60, f"Prometheus answers ({folder / 'prometheus.log'})")
        yield made
    finally:
        process.terminate()
        process.wait(30)

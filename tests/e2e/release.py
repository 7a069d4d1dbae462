"""A cluster with the driver as its chart's pods, for tests that change the release itself."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driver import names
from hack.chart import helm
from hack.cluster import api, chart, errors, layout, state
from tests.e2e import playground
from tests.e2e.conftest import ROOT, hack

MODES = ("gpu", "gpu-timeslice", "gpu-mps", "gpu-mig")
WHERE = layout.Layout(ROOT)


@contextlib.contextmanager
def a_cluster() -> Iterator[api.Cluster]:
    """The cluster that is up, if its driver is pods, or one meanwhile; the driver installed."""
    try:
        found, made = api.Cluster.load(ROOT), False
    except errors.ClusterError:
        hack("up", "--nodes", "2", "--controllers", "2", "--driver", "pods")
        found, made = api.Cluster.load(ROOT), True
    if found.driver is not state.Driver.PODS:
        pytest.skip(f"the cluster that is up has the driver as {found.driver}: make cluster-down")
    try:
        install()
        yield found
    finally:
        if made:
            hack("down")


def install(*flags: str, of: Path = helm.CHART) -> None:
    """The release as `flags` of helm and a chart say, this checkout's by default."""
    chart.install(WHERE, "--set=controller.replicas=2", *flags, of=of)


def a_pod(name: str, **more: Any) -> dict[str, Any]:
    """A pod that sleeps, of any node."""
    sleeping = {"nodeSelector": {}, "tolerations": [], "command": "exec sleep 3600"}
    return playground.a_pod(name, **{**sleeping, **more})


def a_template(mode: str) -> dict[str, Any]:
    """A template, named by the mode, for a device of that mode."""
    template = playground.a_template(mode, deviceClassName=f"{mode}.{names.GROUP}")
    if mode == "gpu-mig":
        chosen = f'device.attributes["{names.DRIVER}"].profile == "1g.10gb"'
        exactly = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
        exactly["selectors"] = [{"cel": {"expression": chosen}}]
    return template


def of_mode(field: playground.Playground, mode: str) -> str:
    """A running pod with a device of one mode, of a template; its name."""
    field.create(a_template(mode), a_pod(f"{mode}-pod", template=mode))
    return f"{mode}-pod"


def left_on(cluster: api.Cluster, *folders: str) -> list[str]:
    """Files of the driver on the nodes."""
    return [
        str(path.relative_to(root))
        for node in cluster.nodes()
        for root in [cluster.node_dir(node)]
        for folder in (folders or ("state", "cdi", "kubelet/plugins", "kubelet/plugins_registry"))
        for path in sorted(Path(root, folder).rglob("*"))
    ]

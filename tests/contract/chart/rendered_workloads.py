"""Workloads of the rendered chart and their containers."""

from typing import Any

from tests.contract.chart import rendered

EVERYTHING = f"--values={rendered.EVERYTHING}"


def workload(results: list[rendered.Object], component: str) -> Any:
    (entries,) = [
        x
        for x in results
        if x["kind"] in {"Deployment", "DaemonSet"}
        and x["metadata"]["labels"]["app.kubernetes.io/component"] == component
    ]
    return entries


def container(results: list[rendered.Object], component: str) -> Any:
    (item,) = workload(results, component)["spec"]["template"]["spec"]["containers"]
    return item

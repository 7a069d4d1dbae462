"""Workloads of the rendered chart and their containers."""

from typing import Any

from tests.contract.chart import rendered

EVERYTHING = f"--values={rendered.EVERYTHING}"


def workload(found: list[rendered.Object], component: str) -> Any:
    (one,) = [
        x
        for x in found
        if x["kind"] in {"Deployment", "DaemonSet"}
        and x["metadata"]["labels"]["app.kubernetes.io/component"] == component
    ]
    return one


def container(found: list[rendered.Object], component: str) -> Any:
    (one,) = workload(found, component)["spec"]["template"]["spec"]["containers"]
    return one

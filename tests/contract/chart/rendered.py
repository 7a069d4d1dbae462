"""Objects that the chart renders, validated against Kubernetes' schemas."""

import functools
import json
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from hack.chart import helm
from hack.cluster import errors

DATA = Path(__file__).parents[2] / "data" / "chart"
EVERYTHING = DATA / "everything.yaml"
PRESETS = sorted(helm.CHART.glob("presets/*.yaml"))
LINES = ("1.36", "1.37")
NEWEST = f"--kube-version={LINES[-1]}.0"
NOT_KUBERNETES = {"ServiceMonitor", "PrometheusRule", "Certificate", "Issuer"}
BUILDS_HELM = pytest.mark.timeout(900)
"""The first test of a machine builds Helm."""

Object = dict[str, Any]


def objects(*flags: str, release: str = "ration", namespace: str = "ration-system") -> list[Object]:
    """All objects, those of `helm test` too."""
    return helm.objects(helm.template(*flags, release=release, namespace=namespace, hooks=True))


def setting(*values: str) -> list[str]:
    """`--set` of each."""
    return [f"--set={value}" for value in values]


def one(results: list[Object], kind: str, name: str) -> Object:
    """The object of a kind and a name."""
    (match,) = [x for x in results if (x["kind"], x["metadata"]["name"]) == (kind, name)]
    return match


def kinds(results: list[Object]) -> set[str]:
    return {x["kind"] for x in results}


def check(results: list[Object], line: str) -> None:
    """Every object against the strict schema of a line of Kubernetes."""
    for obj in results:
        if obj["kind"] not in NOT_KUBERNETES:
            _check(json.dumps(obj, sort_keys=True), line)


@functools.cache
def _check(text: str, line: str) -> None:
    """Many renders have most objects in common."""
    kubernetes_validate.validate(json.loads(text), line, strict=True)


def refusal(*flags: str) -> str:
    """Helm's words for values that it does not take."""
    with pytest.raises(errors.CommandFailedError) as refused:
        helm.template(*flags)
    return " ".join(str(refused.value).split())

"""Calls of DRA drivers, as the kubelets count them themselves.

`dra_operations_duration_seconds` counts what was to be done for a pod: it is an error when no
plugin is registered, when the call fails, when the answer refuses one claim.
`dra_grpc_operations_duration_seconds` counts the calls: an error is a connection that breaks, not a
claim that is refused in a good answer. Neither may have errors.
"""

import collections
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client import parser, samples

from driver import names
from hack.cluster import api

_OPERATIONS = "dra_operations_duration_seconds_count"
_CALLS = "dra_grpc_operations_duration_seconds_count"


@dataclass(frozen=True, slots=True)
class Calls:
    """Since the kubelets started: `failed` by what the kubelet says of them, and how often."""

    prepared: int
    unprepared: int
    failed: dict[str, int]


def count(cluster: api.Cluster) -> Calls:
    """Return the count of all nodes together."""
    done: collections.Counter[str] = collections.Counter()
    failed: collections.Counter[str] = collections.Counter()
    for node in cluster.nodes():
        for metric in metrics(cluster, f"nodes/{node}"):
            labels, number = metric.labels, metric.value
            if metric.name == _OPERATIONS:
                owner = failed if labels["is_error"] == "true" else done
                owner[labels["operation_name"]] += int(number)
            if metric.name == _CALLS and labels["driver_name"] == names.DRIVER:
                code = labels["grpc_status_code"]
                owner = done if code == "OK" else failed
                owner[f"{labels['method_name']}: {code}"] += int(number)
    return Calls(done["PrepareResources"], done["UnprepareResources"], {**+failed})


def metrics(cluster: api.Cluster, location: str) -> Iterator[samples.Sample]:
    """Yield the metrics of a node or a pod, through the API server."""
    text = cluster.kubectl("get", "--raw", f"/api/v1/{location}/proxy/metrics")
    for family in parser.text_string_to_metric_families(text):
        yield from family.samples

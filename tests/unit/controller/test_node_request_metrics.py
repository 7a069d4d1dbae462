"""Tests of what became of nodes that were asked for, in figures."""

import prometheus_client
import pytest

from driver.controller import node_request_metrics


@pytest.fixture
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry()


def test_every_series_of_a_shape_is_there_before_anything_happened(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    node_request_metrics.NodeRequestMetrics(registry, ("h100-8",))
    for name in ("requested_total", "arrived_total", "startup_seconds_count"):
        assert registry.get_sample_value(f"dra_gpu_nodes_{name}", {"shape": "h100-8"}) == 0
    for why in node_request_metrics.FAILURES:
        labels = {"shape": "h100-8", "reason": why}
        assert registry.get_sample_value("dra_gpu_nodes_failed_total", labels) == 0


def test_nodes_that_are_asked_for_arrive_or_fail_and_are_counted_by_shape(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    counted = node_request_metrics.NodeRequestMetrics(registry, ("h100-8", "l4-1"))
    counted.count_requested("h100-8", 2)
    counted.observe_arrival("h100-8", 250.0)
    counted.count_failed("h100-8", node_request_metrics.NOT_ARRIVED)
    owner = {"shape": "h100-8"}
    assert registry.get_sample_value("dra_gpu_nodes_requested_total", owner) == 2
    assert registry.get_sample_value("dra_gpu_nodes_arrived_total", owner) == 1
    assert registry.get_sample_value("dra_gpu_nodes_startup_seconds_sum", owner) == 250
    failed = owner | {"reason": node_request_metrics.NOT_ARRIVED}
    assert registry.get_sample_value("dra_gpu_nodes_failed_total", failed) == 1
    assert registry.get_sample_value("dra_gpu_nodes_requested_total", {"shape": "l4-1"}) == 0

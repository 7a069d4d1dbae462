import datetime as dt

from driver.controller.collectors import node_shapes
from driver.scheduling.reports import model

NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)


def test_a_shape_reports_its_existing_nodes_requested_nodes_and_their_age() -> None:
    coming = (
        model.Coming(wanted_for="pod/a/b", since="2026-11-22T11:59:00Z"),
        model.Coming(wanted_for="pod/a/c", since="2026-11-22T11:58:00Z"),
    )
    figures = node_shapes.figures(
        [
            model.Shape(name="h100-8", nodes=3, coming=coming),
            model.Shape(name="h100-1", resting="is left alone for a while"),
        ],
        NOW,
    )
    assert figures == {
        "dra_gpu_nodes_live": {("h100-8",): 3, ("h100-1",): 0},
        "dra_gpu_nodes_in_flight": {("h100-8",): 2, ("h100-1",): 0},
        "dra_gpu_nodes_oldest_in_flight_seconds": {("h100-8",): 120, ("h100-1",): 0},
        "dra_gpu_nodes_resting": {("h100-8",): 0, ("h100-1",): 1},
    }


def test_without_shapes_there_is_no_series() -> None:
    assert not any(node_shapes.figures([], NOW).values())

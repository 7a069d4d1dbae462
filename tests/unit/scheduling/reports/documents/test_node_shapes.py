"""Nodes on demand, as they are reported."""

from driver.scheduling.reports import model
from tests.support.scenarios import fleets

DEMAND = fleets.a_reading(fleets.on_demand()).shapes()
EIGHT, ONE = DEMAND.items


def test_without_a_document_there_is_nothing_and_nodes_are_not_asked_for() -> None:
    assert fleets.a_reading().shapes() == model.Shapes(total=0, items=(), on=False)


def test_kinds_are_in_the_order_of_their_document_with_what_is_there() -> None:
    assert (DEMAND.on, DEMAND.total) == (True, 2)
    assert (EIGHT.name, EIGHT.gpus, EIGHT.product) == ("h100-8", 8, "NVIDIA H100 80GB HBM3")
    assert (EIGHT.nodes, EIGHT.gpus_there) == (1, 8)
    assert (ONE.nodes, ONE.gpus_there, ONE.coming) == (0, 0, ())


def test_a_start_up_that_was_measured_counts_for_more_than_the_documents() -> None:
    assert (EIGHT.startup_seconds, EIGHT.measured) == (312.0, True)
    assert (ONE.startup_seconds, ONE.measured) == (240.0, False)


def test_in_flight_nodes_are_listed_oldest_first_even_without_a_node_name() -> None:
    assert EIGHT.coming == (
        model.Coming(wanted_for="gang/nlp/rank", since="2026-11-22T11:56:30Z"),
        model.Coming(wanted_for="gang/nlp/rank", since="2026-11-22T11:58:00Z", node="gpu-new"),
    )


def test_a_placeholder_elsewhere_is_anybodys_pod() -> None:
    on_demand = fleets.on_demand()
    for entry in on_demand:
        if entry["kind"] == "Pod" and entry["metadata"]["namespace"] == fleets.HOME:
            entry["metadata"]["namespace"] = "nlp"
    assert [item.coming for item in fleets.a_reading(on_demand).shapes().items] == [(), ()]

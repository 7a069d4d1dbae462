"""What is to be seen of nodes on demand, by the controller that asks for them."""

from driver import names
from driver.controller.web import source as web_source
from driver.scheduling.reports import catalog, model
from tests.fakes.deciding import World
from tests.fakes.demanding import Cluster
from tests.support.builders import shapes


def seen(world: World) -> model.Shapes:
    """As the page has it."""
    minded = web_source.SourceInputs(
        lambda: None, tuple, catalog.no_explanation, tuple, world.decider.shape_offer
    )
    return web_source.ReportSource(world.stores, names.DRIVER, minded, world.clock).read().shapes()


def test_without_a_document_nodes_are_not_asked_for() -> None:
    assert seen(World(1)) == model.Shapes(total=0, items=(), on=False)


def test_shapes_are_seen_by_their_document_before_anything_happened() -> None:
    found = seen(Cluster(shapes.document("h100-8", 8, startup="6m")))
    (one,) = found.items
    assert found.on
    assert (one.gpus, one.startup_seconds, one.measured, one.learned) == (8, 360.0, False, False)
    assert (one.nodes, one.coming, one.resting) == (0, (), "")


def test_a_node_is_in_flight_until_complete_and_its_startup_is_measured() -> None:
    cluster = Cluster()
    cluster.wait_for("train")
    cluster.settle()
    (one,) = seen(cluster).items
    assert [(each.wanted_for, each.node) for each in one.coming] == [("pod/default/train", "")]
    node = cluster.bind()
    cluster.settle()
    (one,) = seen(cluster).items
    assert [each.node for each in one.coming] == [node]
    assert (one.nodes, one.gpus_there) == (0, 0)
    cluster.publish(node)
    cluster.settle()
    cluster.settle(2.0)
    (one,) = seen(cluster).items
    assert (one.nodes, one.gpus_there, one.coming) == (1, 8, ())
    assert (one.measured, one.learned) == (True, True)


def test_a_shape_whose_node_did_not_come_rests_and_says_why() -> None:
    cluster = Cluster(ttl="2m")
    cluster.wait_for("train")
    cluster.settle()
    cluster.settle(130.0)
    (one,) = seen(cluster).items
    assert one.resting.startswith("is left alone for a while: no node of shape h100-8 has come")

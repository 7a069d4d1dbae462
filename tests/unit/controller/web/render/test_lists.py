import pytest

from driver import errors
from driver.controller.web.render import lists as render_lists
from driver.controller.web.render import queries
from driver.scheduling.reports import model
from tests.support.scenarios import fleets

NODES = fleets.a_reading().nodes().items


def names(**fields: str) -> list[str]:
    return [
        item.name
        for item in render_lists.nodes(NODES, queries.read(queries.NodeQuery, fields)).items
    ]


def test_nodes_are_those_with_one_gpu_that_is_all_that_was_asked() -> None:
    assert names() == ["gpu-1", "gpu-2", "gpu-3"]
    assert names(mode="mig") == ["gpu-1"]
    assert names(state="kept") == ["gpu-2"]
    assert names(state="idle", mode="mps") == ["gpu-1"]
    assert names(state="idle", mode="mig") == []
    assert names(health="unhealthy") == names(state="unhealthy") == ["gpu-1"]
    assert names(name="3") == ["gpu-3"]
    assert names(product="NVIDIA A100") == []


def test_the_order_is_by_name_or_by_what_is_given() -> None:
    assert names(sort="used")[0] == "gpu-1"
    assert names(sort="free")[-1] == "gpu-1"


def test_a_filtered_list_is_read_part_by_part() -> None:
    first = render_lists.nodes(NODES, queries.read(queries.NodeQuery, {"limit": "2"}))
    assert ([item.name for item in first.items], first.next, first.total) == (
        ["gpu-1", "gpu-2"],
        "gpu-2",
        3,
    )
    assert names(limit="2", **{"continue": first.next}) == ["gpu-3"]


def test_claims_are_found_by_a_part_of_their_name_and_not_of_their_namespace() -> None:
    claims = fleets.a_reading().claims().items
    part = render_lists.filter_by_name(
        claims, lambda claim: claim.key, queries.ObjectQuery(name="ba")
    )
    assert (part.total, part.items) == (0, ())
    part = render_lists.filter_by_name(
        claims, lambda claim: claim.key, queries.ObjectQuery(name="al")
    )
    assert [item.key for item in part.items] == ["batch/half", "batch/small"]


def test_events_are_found_by_object_and_text() -> None:
    def moment(reason: str, name: str) -> model.Moment:
        return model.Moment(at="", reason=reason, kind="Pod", namespace="a", name=name)

    moments = [moment("NoFit", "x"), moment("Allocated", "x"), moment("NoFit", "y")]
    timeline = render_lists.timeline(
        moments, queries.read(queries.TimelineQuery, {"reason": "NoFit", "limit": "1"})
    )
    assert (timeline.total, [item.name for item in timeline.items]) == (2, ["x"])
    assert render_lists.timeline(moments, queries.TimelineQuery(namespace="b")).total == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mode": "quick"}, "query: mode is 'quick': input should be '', 'free', 'kept'"),
        ({"limit": "0"}, "query: limit is '0': input should be greater than or equal to 1"),
        ({"limit": "many"}, "query: limit is 'many'"),
        ({"colour": "red"}, "query: colour is not known; there are continue, health, limit, live"),
    ],
)
def test_a_question_that_makes_no_sense_is_told_in_one_line(
    parameters: dict[str, str], message: str
) -> None:
    with pytest.raises(errors.BadInput) as caught:
        queries.read(queries.NodeQuery, parameters)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_changed_question_begins_at_the_first_page() -> None:
    query = queries.read(queries.NodeQuery, {"mode": "mig", "continue": "gpu-2"})
    assert query.changed(live="off") == {"mode": "mig", "live": "off"}
    assert query.changed(mode="") == {}

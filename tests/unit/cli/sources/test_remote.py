"""Tests that a controller's reports equal those read without one: one model, two sources."""

import json
from collections.abc import Callable

import pytest

from driver import errors
from driver.cli.sources import remote
from driver.scheduling.reports import catalog, model, selection
from tests.support import web_page
from tests.support.scenarios import fleets

HERE = fleets.a_reading(fleets.on_demand())
Report = Callable[[remote.Remote | catalog.Reports], object]
REPORTS: dict[str, Report] = {
    "fleet": lambda of: of.fleet(),
    "nodes": lambda of: of.nodes(),
    "nodes that are meant": lambda of: of.nodes(node_filter=selection.NodeFilter(mode="mig")),
    "a node": lambda of: of.node("gpu-1"),
    "no node": lambda of: of.node("nowhere"),
    "claims": lambda of: of.claims(),
    "claims of a namespace": lambda of: of.claims("batch"),
    "a claim": lambda of: of.claim("nlp/serve"),
    "no claim": lambda of: of.claim("nlp/nothing"),
    "pods": lambda of: of.pods(),
    "a pod": lambda of: of.pod("nlp/big"),
    "who waits": lambda of: of.waiting(),
    "queues": lambda of: of.queues(),
    "shapes": lambda of: of.shapes(),
    "reservations": lambda of: of.reservations(),
}


@pytest.fixture(scope="module")
def there() -> remote.Remote:
    asked = web_page.an_application(web_page.Fixed(HERE)).test_client()

    def get(path: str) -> tuple[int, bytes]:
        answer = asked.get(path)
        return answer.status_code, answer.data

    return remote.Remote(get)


@pytest.mark.parametrize("name", REPORTS)
def test_a_controller_answers_what_would_be_worked_out_here(
    name: str, there: remote.Remote
) -> None:
    assert REPORTS[name](there) == REPORTS[name](HERE)


def answering(code: int, body: bytes) -> remote.Remote:
    return remote.Remote(lambda _: (code, body))


def test_a_long_list_is_read_part_by_part() -> None:
    asked: list[str] = []
    parts = [
        model.Claims(
            total=2, next="a/b", items=(model.Claim(namespace="a", name="b", state="pending"),)
        ),
        model.Claims(total=2, items=(model.Claim(namespace="a", name="c", state="pending"),)),
    ]

    def get(path: str) -> tuple[int, bytes]:
        asked.append(path)
        return 200, parts[len(asked) - 1].model_dump_json(by_alias=True).encode()

    found = remote.Remote(get).claims()
    assert [one.name for one in found.items] == ["b", "c"]
    assert "continue=a%2Fb" in asked[1]


def test_fields_of_a_newer_controller_are_passed_over() -> None:
    told = {**HERE.fleet().model_dump(mode="json", by_alias=True), "invented": 1}
    assert answering(200, json.dumps(told).encode()).fleet() == HERE.fleet()


def test_what_is_no_document_is_told_as_another_version() -> None:
    with pytest.raises(errors.ServerError, match="another version"):
        answering(200, b"<html>").fleet()


@pytest.mark.parametrize(
    ("code", "kind"),
    [(401, errors.Unauthorized), (403, errors.Forbidden), (503, errors.ServerError)],
)
def test_a_refusal_has_the_controllers_words(code: int, kind: type[errors.ApiError]) -> None:
    with pytest.raises(kind) as refused:
        answering(code, b'{"error": "you may not list pods", "code": 403}').fleet()
    assert refused.value.message == "you may not list pods"

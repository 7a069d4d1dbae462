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
    "fleet": lambda source: source.fleet(),
    "nodes": lambda source: source.nodes(),
    "nodes that are meant": lambda source: source.nodes(
        node_filter=selection.NodeFilter(mode="mig")
    ),
    "a node": lambda source: source.node("gpu-1"),
    "no node": lambda source: source.node("nowhere"),
    "claims": lambda source: source.claims(),
    "claims of a namespace": lambda source: source.claims("batch"),
    "a claim": lambda source: source.claim("nlp/serve"),
    "no claim": lambda source: source.claim("nlp/nothing"),
    "pods": lambda source: source.pods(),
    "a pod": lambda source: source.pod("nlp/big"),
    "who waits": lambda source: source.waiting(),
    "queues": lambda source: source.queues(),
    "shapes": lambda source: source.shapes(),
    "reservations": lambda source: source.reservations(),
}


@pytest.fixture(scope="module")
def remote_source() -> remote.Remote:
    client = web_page.an_application(web_page.Fixed(HERE)).test_client()

    def get(path: str) -> tuple[int, bytes]:
        answer = client.get(path)
        return answer.status_code, answer.data

    return remote.Remote(get)


@pytest.mark.parametrize("name", REPORTS)
def test_a_controller_answers_what_would_be_worked_out_here(
    name: str, remote_source: remote.Remote
) -> None:
    assert REPORTS[name](remote_source) == REPORTS[name](HERE)


def answering(code: int, body: bytes) -> remote.Remote:
    return remote.Remote(lambda _: (code, body))


def test_a_long_list_is_read_part_by_part() -> None:
    requested: list[str] = []
    parts = [
        model.Claims(
            total=2, next="a/b", items=(model.Claim(namespace="a", name="b", state="pending"),)
        ),
        model.Claims(total=2, items=(model.Claim(namespace="a", name="c", state="pending"),)),
    ]

    def get(path: str) -> tuple[int, bytes]:
        requested.append(path)
        return 200, parts[len(requested) - 1].model_dump_json(by_alias=True).encode()

    claims = remote.Remote(get).claims()
    assert [item.name for item in claims.items] == ["b", "c"]
    assert "continue=a%2Fb" in requested[1]


def test_fields_of_a_newer_controller_are_passed_over() -> None:
    document = {**HERE.fleet().model_dump(mode="json", by_alias=True), "invented": 1}
    assert answering(200, json.dumps(document).encode()).fleet() == HERE.fleet()


def test_an_unknown_document_is_reported_as_another_version() -> None:
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

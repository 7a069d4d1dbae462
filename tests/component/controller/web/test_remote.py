"""What `ration` reads of the API is what it would read of the cluster itself."""

from collections.abc import Iterator

import pytest

from driver import errors
from driver.cli.sources import http as source_http
from driver.cli.sources import remote
from driver.scheduling.reports import selection
from tests.support import web_page

R = web_page.a_reading()


@pytest.fixture
def far() -> Iterator[remote.Remote]:
    with web_page.served(web_page.an_application(web_page.Fixed(R))) as port:
        yield remote.Remote(source_http.PageClient(f"http://localhost:{port}", "").get)


def test_every_report_comes_over_as_it_is(far: remote.Remote) -> None:
    assert far.fleet() == R.fleet()
    assert far.nodes() == R.nodes()
    assert far.node("gpu-1") == R.node("gpu-1")
    assert far.claims() == R.claims()
    assert far.claims("batch") == R.claims("batch")
    assert far.claim("nlp/serve") == R.claim("nlp/serve")
    assert far.waiting() == R.waiting()
    assert far.pods("nlp") == R.pods("nlp")
    assert far.pod("nlp/big") == R.pod("nlp/big")
    assert far.queues() == R.queues()
    assert far.reservations() == R.reservations()
    assert far.shapes() == R.shapes()


def test_a_list_is_read_by_parts_and_filtered_alike(far: remote.Remote) -> None:
    part = selection.PageRequest(limit=2)
    assert far.nodes(part) == R.nodes(part)
    assert far.claims(part=part) == R.claims(part=part)
    rest = selection.PageRequest(after=R.claims(part=part).next, limit=2)
    assert far.claims(part=rest) == R.claims(part=rest)
    wanted = selection.NodeFilter(mode="free", health="unhealthy")
    assert far.nodes(node_filter=wanted) == R.nodes(node_filter=wanted)


def test_a_missing_object_is_none(far: remote.Remote) -> None:
    assert far.node("nowhere") is None
    assert far.pod("a/b") is None


def test_a_question_that_makes_no_sense_has_the_controllers_words(far: remote.Remote) -> None:
    with pytest.raises(errors.ApiError, match="query: mode is 'quick'"):
        far.nodes(node_filter=selection.NodeFilter(mode="quick"))

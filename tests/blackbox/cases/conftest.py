"""Fixtures of the cases and the report of their results."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from driver.kube import client
from hack.cluster import api
from tests.blackbox import run, session, subject
from tests.blackbox.ground import programs, room, seat
from tests.e2e import playground

CASE_S = 420
_SECONDS: dict[str, float] = {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what was asked for; skip what the subject does not offer, and say so."""
    reported = session.Session.found()
    mine = [item for item in items if item.path.parent == Path(__file__).parent]
    if reported is None:
        for entry in mine:
            entry.add_marker(pytest.mark.skip(reason="run by python -m tests.blackbox"))
        return
    source = subject.read(Path(reported.subject))
    line = api.Cluster.load(run.ROOT).kubernetes
    left = [item for item in mine if _case(item).kwargs["number"] not in reported.cases]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
    for entry in items:
        entry.add_marker(pytest.mark.timeout(CASE_S))
        missing = [need for need in _case(entry).kwargs["needs"] if need not in source.offers]
        since = _case(entry).kwargs["since"]
        if missing:
            entry.add_marker(pytest.mark.skip(reason=f"does not offer {', '.join(missing)}"))
        elif since and tuple(map(int, since.split("."))) > tuple(map(int, line.split("."))):
            entry.add_marker(pytest.mark.skip(reason=f"Kubernetes has it since {since}"))


def _case(item: pytest.Item) -> pytest.Mark:
    mark = item.get_closest_marker("case")
    assert mark is not None, f"{item.nodeid} has no number: @catalogue.case"
    return mark


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, Any, Any]:
    """Note what came of a case, once it is over."""
    created = yield
    reported = session.Session.found()
    if reported is None or item.get_closest_marker("case") is None:
        return created
    number = _case(item).kwargs["number"]
    _SECONDS[number] = _SECONDS.get(number, 0.0) + call.duration
    if created.failed or created.skipped or created.when == "teardown":
        bad = item.stash.setdefault(_BAD, [])
        if created.failed or created.skipped:
            why = created.longrepr[2] if isinstance(created.longrepr, tuple) else _why(call)
            bad.append((created.outcome, why.removeprefix("Skipped: ")))
        if created.when == "teardown":
            outcome, detail = (bad or [("passed", "")])[0]
            seconds = round(_SECONDS[number], 1)
            reported.note(
                {"number": number, "outcome": outcome, "seconds": seconds, "detail": detail[:4000]}
            )
    return created


def _why(call: pytest.CallInfo[Any]) -> str:
    return "" if call.excinfo is None else f"{call.excinfo.typename}: {call.excinfo.value}"


_BAD = pytest.StashKey[list[tuple[str, str]]]()


@pytest.fixture(scope="session")
def run_session() -> session.Session:
    """Return what this process was told to do."""
    result = session.Session.found()
    assert result is not None
    return result


@pytest.fixture(scope="session")
def cluster() -> api.Cluster:
    """The cluster that the run brought up."""
    return api.Cluster.load(run.ROOT)


@pytest.fixture(scope="session")
def kube(cluster: api.Cluster) -> client.KubeClient:
    """The administrator's client."""
    return client.KubeClient.connect(cluster.kubeconfig, "ration-blackbox")


@pytest.fixture(scope="session")
def tried(run_session: session.Session) -> subject.Subject:
    """Return who is tried."""
    return subject.read(Path(run_session.subject))


@pytest.fixture(scope="session")
def here(
    run_session: session.Session,
    cluster: api.Cluster,
    kube: client.KubeClient,
    tried: subject.Subject,
) -> Iterator[seat.Seat]:
    """The subject on this process' node."""
    places = programs.Places(run.WHERE, run_session.node, tried.name)
    with seat.Seat(cluster, kube, places, tried).taken() as taken:
        yield taken


@pytest.fixture(scope="module")
def neighbour(here: seat.Seat) -> Iterator[seat.Seat]:
    """A second driver on the same node."""
    flags = ("--driver-name", "neighbour.example.com", "--device-prefix", "other")
    named = programs.named(
        subject.read(run.NEIGHBOUR), "_neighbour", "neighbour.example.com", *flags
    )
    places = programs.Places(run.WHERE, here.node, named.name)
    with seat.Seat(here.cluster, here.kube, places, named).taken() as taken:
        yield taken


@pytest.fixture
def field(here: seat.Seat) -> Iterator[room.Room]:
    """A namespace; all is mended and gone before the next case."""
    ground = playground.Playground.open(here.cluster, here.kube)
    created = room.Room(here, ground)
    try:
        yield created
    finally:
        here.mend()
        ground.close()

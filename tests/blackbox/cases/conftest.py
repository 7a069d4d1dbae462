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
    told = session.Session.found()
    mine = [one for one in items if one.path.parent == Path(__file__).parent]
    if told is None:
        for one in mine:
            one.add_marker(pytest.mark.skip(reason="run by python -m tests.blackbox"))
        return
    of = subject.read(Path(told.subject))
    line = api.Cluster.load(run.ROOT).kubernetes
    left = [one for one in mine if _case(one).kwargs["number"] not in told.cases]
    config.hook.pytest_deselected(items=left)
    items[:] = [one for one in items if one not in left]
    for one in items:
        one.add_marker(pytest.mark.timeout(CASE_S))
        missing = [need for need in _case(one).kwargs["needs"] if need not in of.offers]
        since = _case(one).kwargs["since"]
        if missing:
            one.add_marker(pytest.mark.skip(reason=f"does not offer {', '.join(missing)}"))
        elif since and tuple(map(int, since.split("."))) > tuple(map(int, line.split("."))):
            one.add_marker(pytest.mark.skip(reason=f"Kubernetes has it since {since}"))


def _case(item: pytest.Item) -> pytest.Mark:
    found = item.get_closest_marker("case")
    assert found is not None, f"{item.nodeid} has no number: @catalogue.case"
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, Any, Any]:
    """Note what came of a case, once it is over."""
    made = yield
    told = session.Session.found()
    if told is None or item.get_closest_marker("case") is None:
        return made
    number = _case(item).kwargs["number"]
    _SECONDS[number] = _SECONDS.get(number, 0.0) + call.duration
    if made.failed or made.skipped or made.when == "teardown":
        bad = item.stash.setdefault(_BAD, [])
        if made.failed or made.skipped:
            why = made.longrepr[2] if isinstance(made.longrepr, tuple) else _why(call)
            bad.append((made.outcome, why.removeprefix("Skipped: ")))
        if made.when == "teardown":
            outcome, detail = (bad or [("passed", "")])[0]
            seconds = round(_SECONDS[number], 1)
            told.note(
                {"number": number, "outcome": outcome, "seconds": seconds, "detail": detail[:4000]}
            )
    return made


def _why(call: pytest.CallInfo[Any]) -> str:
    return "" if call.excinfo is None else f"{call.excinfo.typename}: {call.excinfo.value}"


_BAD = pytest.StashKey[list[tuple[str, str]]]()


@pytest.fixture(scope="session")
def told() -> session.Session:
    """Return what this process was told to do."""
    found = session.Session.found()
    assert found is not None
    return found


@pytest.fixture(scope="session")
def cluster() -> api.Cluster:
    """The cluster that the run brought up."""
    return api.Cluster.load(run.ROOT)


@pytest.fixture(scope="session")
def kube(cluster: api.Cluster) -> client.KubeClient:
    """The administrator's client."""
    return client.KubeClient.connect(cluster.kubeconfig, "ration-blackbox")


@pytest.fixture(scope="session")
def tried(told: session.Session) -> subject.Subject:
    """Return who is tried."""
    return subject.read(Path(told.subject))


@pytest.fixture(scope="session")
def here(
    told: session.Session, cluster: api.Cluster, kube: client.KubeClient, tried: subject.Subject
) -> Iterator[seat.Seat]:
    """The subject on this process' node."""
    places = programs.Places(run.WHERE, told.node, tried.name)
    with seat.Seat(cluster, kube, places, tried).taken() as taken:
        yield taken


@pytest.fixture(scope="module")
def neighbour(here: seat.Seat) -> Iterator[seat.Seat]:
    """A second driver on the same node."""
    flags = ("--driver-name", "neighbour.example.com", "--device-prefix", "other")
    of = programs.named(subject.read(run.NEIGHBOUR), "_neighbour", "neighbour.example.com", *flags)
    places = programs.Places(run.WHERE, here.node, of.name)
    with seat.Seat(here.cluster, here.kube, places, of).taken() as taken:
        yield taken


@pytest.fixture
def field(here: seat.Seat) -> Iterator[room.Room]:
    """A namespace; all is mended and gone before the next case."""
    ground = playground.Playground.open(here.cluster, here.kube)
    made = room.Room(here, ground)
    try:
        yield made
    finally:
        here.mend()
        ground.close()

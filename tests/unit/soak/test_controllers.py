from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

from driver.kube import client, gvr
from tests.chaos import asks
from tests.fakes import clock
from tests.soak import controllers

if TYPE_CHECKING:
    from benchmarks.control_plane import fixture

ASKED = controllers.Asked(seed=7, pods=60, rate=12.0)


class Api:
    """Keeps what is created until it is deleted."""

    def __init__(self) -> None:
        self.kept: set[tuple[gvr.Resource, str]] = set()
        self.made = Counter[gvr.Resource]()
        self.bodies: list[dict[str, Any]] = []

    def create(self, kind: gvr.Resource, body: dict[str, Any], _namespace: str) -> None:
        self.kept.add((kind, body["metadata"]["name"]))
        self.made[kind] += 1
        self.bodies.append(body)

    def delete(self, kind: gvr.Resource, name: str, _namespace: str) -> None:
        self.kept.remove((kind, name))


class Binder:
    """Binds every pod at once, but the one of that name."""

    def __init__(self, never: str = "") -> None:
        self._never = never

    def wait(self, pods: Collection[str], within_s: float) -> None:
        if self._never in pods:
            raise RuntimeError(f"0 of 1 pods came in {within_s} s")


def load(api: Api, binder: Binder) -> controllers.Load:
    kube, seen = cast("client.KubeClient", api), cast("fixture.Seen", binder)
    return controllers.Load(kube, ASKED, seen, clock.FakeClock())


def test_every_pod_is_bound_and_goes_with_its_claim() -> None:
    api = Api()
    work = load(api, Binder())
    work.lane()
    assert work.book.broken == []
    assert work.book.pods == api.made[gvr.PODS] >= ASKED.pods
    assert api.kept == set()
    assert work.book.seconds >= ASKED.pods / ASKED.rate - 1


def test_nobody_asks_for_admin_access_which_its_namespace_has_to_allow() -> None:
    api = Api()
    load(api, Binder()).lane()
    assert "adminAccess" not in str(api.bodies)
    forms = {work.form for work, _ in zip(asks.asks(ASKED.seed), range(ASKED.pods), strict=False)}
    assert asks.Form.ADMIN in forms


def test_a_pod_that_is_never_bound_ends_the_run_and_is_named() -> None:
    api = Api()
    work = load(api, Binder(never="w00003-0"))
    work.lane()
    assert len(work.book.broken) == 1
    assert work.book.broken[0].startswith("w00003, ")
    assert work.book.pods < ASKED.pods
    planned = api.made[gvr.PODS]
    work.lane()
    assert api.made[gvr.PODS] == planned

"""Work items that a change of a claim enqueues."""

from dataclasses import replace

from driver.controller.commit import write_pool
from driver.controller.informers import handlers, stores
from driver.kube import workqueue
from driver.resources.core import pods
from driver.resources.dra import claims
from tests.fakes import clock as fake_clock
from tests.support.builders import objects

HELD = objects.claim(status=objects.allocated("node-a", "gpu-0"))
MARKED = replace(HELD, version="9", released=True)


def enqueued(old: claims.Claim, new: claims.Claim) -> set[str]:
    """Return the kinds of the items that a claim's change enqueues at once."""
    items = workqueue.WorkQueue[write_pool.WorkItem](fake_clock.FakeClock(), lambda: 0.0)
    caches = stores.empty()
    caches.pods.set_parser(pods.parse, lambda _key, _error: None)
    caches.claims.set_parser(claims.parse, lambda _key, _error: None)
    caches.pods.apply(objects.a_pod())
    subject = handlers.EventHandlers(items)
    subject.attach(caches)
    caches.pods_by_claim.update(None, objects.pod())
    subject.on_claim(old.key, old, new)
    kinds = set()
    while len(items):
        item = items.get(0.0)
        assert item is not None
        kinds.add(item.kind)
    return kinds


def test_a_changed_claim_enqueues_itself_and_its_pods() -> None:
    assert enqueued(HELD, replace(HELD, version="9", deleting=True)) == {"claim", "pod"}


def test_the_mark_of_a_release_enqueues_nobody() -> None:
    assert enqueued(HELD, MARKED) == set()


def test_a_release_enqueues_the_claims_pods() -> None:
    assert enqueued(MARKED, replace(MARKED, version="10", allocation=None)) == {"claim", "pod"}

"""Two electors on one lease (F-16)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from driver import clock, errors
from driver.kube import client, gvr, lease
from tests.fakes import waiting
from tests.fakes.apiserver import faults, server
from tests.fakes.faultproxy import plan, proxy

QUICK = lease.Timings(lease_s=1.0, renew_deadline_s=0.6, retry_s=0.1, settle_s=0.2)


class FreezableClock(clock.SystemClock):
    """Its waits do not end while frozen, as those of a process under SIGSTOP."""

    def __init__(self) -> None:
        self.running = threading.Event()
        self.running.set()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        answer = super().wait(event, timeout_s)
        self.running.wait()
        return answer


class Candidate:
    """An elector on its thread."""

    def __init__(
        self, kube: client.KubeClient, identity: str, timings: lease.Timings = QUICK
    ) -> None:
        self.clock = FreezableClock()
        self.elector = lease.Elector(
            kube, "ration", "ration-controller", identity, self.clock, timings
        )
        self.terms: list[lease.Term] = []
        self.led_at = 0.0
        self.lost = threading.Event()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.elector.run(self.stop, self._led, self.lost.set)

    def _led(self, term: lease.Term) -> None:
        self.led_at = self.clock.monotonic()
        self.terms.append(term)

    def close(self) -> None:
        self.clock.running.set()
        self.stop.set()
        self.thread.join(3)
        assert not self.thread.is_alive()


@contextmanager
def candidate(
    kube: client.KubeClient, identity: str, timings: lease.Timings = QUICK
) -> Iterator[Candidate]:
    running = Candidate(kube, identity, timings)
    try:
        yield running
    finally:
        running.close()


def spec(api: server.ApiServer) -> gvr.Object:
    result = api.read(gvr.LEASES, "ration-controller", "ration")
    return result["spec"] if result else {}


def test_the_first_takes_the_lease_settles_and_leads(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    with candidate(kube, "one") as item:
        waiting.until(lambda: spec(api).get("holderIdentity") == "one")
        acquired_at = item.clock.monotonic()
        assert not item.elector.is_leader
        waiting.until(item.elector.acquired.is_set)
        waiting.until(lambda: item.terms)
        assert item.led_at - acquired_at >= QUICK.settle_s - 0.1
        assert item.terms == [lease.Term("one", 0)]
        assert item.elector.term() == lease.Term("one", 0)
        renewals = len(api.requests)
        waiting.until(lambda: len(api.requests) > renewals + 3)
        assert item.elector.is_leader


def test_the_second_waits_while_the_first_renews(kube: client.KubeClient) -> None:
    with candidate(kube, "one") as item:
        waiting.until(lambda: item.elector.is_leader)
        with candidate(kube, "two") as two:
            threading.Event().wait(1.5 * QUICK.lease_s)
            assert item.elector.is_leader
            assert not two.terms


def test_a_leader_that_stops_cleanly_leaves_the_lease_free_at_once(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    with candidate(kube, "two") as two:
        waiting.until(lambda: two.elector.is_leader)
        with candidate(kube, "one") as item:
            threading.Event().wait(0.2)
            two.close()
            stopped_at = item.clock.monotonic()
            assert two.elector.term() is None
            assert not two.lost.is_set()
            waiting.until(lambda: item.elector.is_leader)
            assert item.led_at - stopped_at < QUICK.lease_s
            assert spec(api)["leaseTransitions"] == 1
            assert item.terms == [lease.Term("one", 1)]


def test_a_frozen_leader_is_succeeded_and_finds_out_before_it_writes(
    kube: client.KubeClient,
) -> None:
    with candidate(kube, "one") as item:
        waiting.until(lambda: item.elector.is_leader)
        item.clock.running.clear()
        with candidate(kube, "two") as two:
            frozen_at = two.clock.monotonic()
            waiting.until(lambda: two.elector.is_leader)
            assert two.led_at - frozen_at >= QUICK.lease_s - QUICK.retry_s
            assert item.elector.term() is None
            item.clock.running.set()
            waiting.until(item.lost.is_set)
            assert two.elector.is_leader
            assert two.terms == [lease.Term("two", 1)]


def test_a_leader_without_a_server_loses_before_its_successor_could_win(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    with candidate(kube, "one") as item:
        waiting.until(lambda: item.elector.is_leader)
        api.faults.add(faults.HalfOpen())
        cut_at = item.clock.monotonic()
        waiting.until(item.lost.is_set)
        assert item.clock.monotonic() - cut_at < QUICK.lease_s
        assert not item.elector.is_leader


def test_a_short_outage_costs_no_term(api: server.ApiServer, kube: client.KubeClient) -> None:
    with candidate(kube, "one") as item:
        waiting.until(lambda: item.elector.is_leader)
        api.faults.add(faults.Answer(500), times=2)
        requested = len(api.requests)
        waiting.until(lambda: len(api.requests) > requested + 4)
        assert item.elector.is_leader
        assert not item.lost.is_set()


def test_a_stolen_lease_is_lost(api: server.ApiServer, kube: client.KubeClient) -> None:
    with candidate(kube, "one") as item:
        waiting.until(lambda: item.elector.is_leader)
        body = {"spec": {"holderIdentity": "thief", "leaseTransitions": 7}}
        kube.patch(gvr.LEASES, "ration-controller", body, namespace="ration")
        waiting.until(item.lost.is_set)
        assert not item.elector.is_leader
        assert spec(api)["holderIdentity"] == "thief"


def test_a_write_of_others_that_leaves_the_holder_costs_no_term(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    with candidate(kube, "one") as item:
        waiting.until(lambda: item.elector.is_leader)
        body = {"metadata": {"labels": {"seen": "yes"}}}
        kube.patch(gvr.LEASES, "ration-controller", body, namespace="ration")
        requested = len(api.requests)
        waiting.until(lambda: len(api.requests) > requested + 5)
        assert item.elector.is_leader


def test_foreign_fields_of_the_lease_survive_terms_and_renewals(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    meta = {"labels": {"app": "ration"}, "annotations": {"meta.helm.sh/release-name": "ration"}}
    installed = {"metadata": {"name": "ration-controller", "namespace": "ration", **meta}}
    kube.create(gvr.LEASES, installed, "ration")
    with candidate(kube, "one") as item:
        waiting.until(lambda: item.elector.is_leader)
        begun = spec(api)["acquireTime"]
        requested = len(api.requests)
        waiting.until(lambda: len(api.requests) > requested + 4)
        assert spec(api)["acquireTime"] == begun
    result = api.read(gvr.LEASES, "ration-controller", "ration")
    assert result is not None
    assert {key: result["metadata"][key] for key in meta} == meta
    assert result["spec"]["holderIdentity"] in {"", None}


def test_a_renewal_with_a_lost_response_is_repeated_at_once(
    api: server.ApiServer, tmp_path: Path
) -> None:
    """A wait in between would cost the lease when the lost answer took long to be given up."""
    patient = lease.Timings(lease_s=4.0, renew_deadline_s=3.0, retry_s=0.5, settle_s=0.1)
    lost = plan.Script({(plan.Kind.REPLACE, 1): plan.ResetAfter()})
    with proxy.FaultProxy(api.url, lost) as between:
        kube = client.KubeClient.connect(between.kubeconfig(tmp_path), "test")
        with candidate(kube, "a_1", patient) as a:
            waiting.until(lambda: [r.method for r in api.requests].count("PUT") >= 4)
            assert not a.lost.is_set()
    request = [(r.method, r.at) for r in api.requests]
    methods = "".join(method[0] + method[1] for method, _ in request)
    assert methods.startswith("GEPOPUPUPUGEPU")  # the second PUT is lost, the third a conflict
    assert request[6][1] - request[5][1] < patient.retry_s / 2


def test_stamps_of_a_clock_gone_wrong_are_not_believed(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    old = {"holderIdentity": "gone", "leaseTransitions": 4, "renewTime": "2001-01-01T00:00:00.0Z"}
    api.put(
        gvr.LEASES,
        {"metadata": {"name": "ration-controller", "namespace": "ration"}, "spec": old},
    )
    with candidate(kube, "one") as item:
        started_at = item.clock.monotonic()
        waiting.until(lambda: item.elector.is_leader)
        assert item.led_at - started_at >= QUICK.lease_s
        assert item.terms == [lease.Term("one", 5)]


@pytest.mark.parametrize("identity", ["", "x" * 110, "a\nb", "ü" * 60])
def test_an_identity_that_fits_no_field_manager_is_refused_at_the_start(
    kube: client.KubeClient, identity: str
) -> None:
    with pytest.raises(errors.BadInput, match="field manager"):
        lease.Elector(kube, "ration", "lease", identity, clock.SystemClock())

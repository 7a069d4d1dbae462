import base64
import datetime as dt
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import urllib3

from driver import clock as clocks
from driver import errors
from driver.kube import client, gvr
from driver.runtime.https import cert_files, server
from driver.webhook import server as door_of
from driver.webhook.tls import ca, certificates
from tests.fakes import clock
from tests.fakes.apiserver import server as api_server

HOST = "127.0.0.1"
PLACE = certificates.CertificateConfig(
    "ration-system", "ration-admission-tls", (HOST,), "ration-admission"
)
KINDS = (gvr.VALIDATING_WEBHOOKS, gvr.MUTATING_WEBHOOKS)
DAY_S = 86400.0


class Replica:
    """One of the processes that share a Secret."""

    def __init__(self, kube: client.KubeClient, time: clock.FakeClock) -> None:
        self.leads = True
        self.served: list[bytes] = []
        self.keeping = certificates.SecretCertificates(
            kube, PLACE, lambda: self.leads, self._use, time
        )

    def _use(self, certificate: bytes, key: bytes) -> None:
        assert b"PRIVATE KEY" in key
        self.served.append(certificate)


@pytest.fixture
def time() -> clock.FakeClock:
    return clock.FakeClock()


@pytest.fixture
def leader(kube: client.KubeClient, time: clock.FakeClock) -> Replica:
    return Replica(kube, time)


@pytest.fixture
def follower(kube: client.KubeClient, time: clock.FakeClock) -> Replica:
    replica = Replica(kube, time)
    replica.leads = False
    return replica


@pytest.fixture(autouse=True)
def installed(api: api_server.ApiServer) -> None:
    for kind in KINDS:
        entry = {"clientConfig": {"service": {"name": "ration-admission"}}, "sideEffects": "None"}
        webhooks = [{"name": "a.ration.dev", **entry}, {"name": "b.ration.dev", **entry}]
        api.put(kind, {"metadata": {"name": "ration-admission"}, "webhooks": webhooks})


def secret(api: api_server.ApiServer) -> dict[str, Any]:
    return api.read(gvr.SECRETS, PLACE.secret, PLACE.namespace) or {}


def bundle(api: api_server.ApiServer) -> ca.Bundle:
    data = secret(api)["data"]
    return ca.parse_data({key: base64.b64decode(value) for key, value in data.items()})


def believed(api: api_server.ApiServer) -> set[bytes]:
    return {
        base64.b64decode(webhook["clientConfig"]["caBundle"])
        for kind in KINDS
        for webhook in (api.read(kind, "ration-admission") or {})["webhooks"]
    }


def writes(api: api_server.ApiServer) -> list[str]:
    return [request.method for request in api.requests if request.method != "GET"]


def test_the_leader_makes_what_all_serve(
    api: api_server.ApiServer, leader: Replica, follower: Replica
) -> None:
    follower.keeping.reconcile()
    assert follower.served == []
    leader.keeping.reconcile()
    follower.keeping.reconcile()
    assert leader.served == follower.served == [bundle(api).leaf.certificate]
    assert believed(api) == {bundle(api).trusted}
    service = (api.read(KINDS[0], "ration-admission") or {})["webhooks"][1]["clientConfig"]
    assert service["service"] == {"name": "ration-admission"}


def test_nothing_is_written_or_served_anew_while_nothing_is_due(
    api: api_server.ApiServer, leader: Replica
) -> None:
    leader.keeping.reconcile()
    previous = writes(api)
    leader.keeping.reconcile()
    assert writes(api) == previous
    assert len(leader.served) == 1


def test_a_follower_writes_nothing(api: api_server.ApiServer, follower: Replica) -> None:
    follower.keeping.reconcile()
    assert writes(api) == []


def test_a_renewed_certificate_reaches_every_replica(
    api: api_server.ApiServer, leader: Replica, follower: Replica, time: clock.FakeClock
) -> None:
    leader.keeping.reconcile()
    follower.keeping.reconcile()
    previous = believed(api)
    time.advance(61 * DAY_S)
    leader.keeping.reconcile()
    follower.keeping.reconcile()
    assert len(set(follower.served)) == 2
    assert leader.served == follower.served
    assert believed(api) == previous


def test_a_new_authority_is_believed_before_anybody_serves_what_it_signs(
    api: api_server.ApiServer, leader: Replica, time: clock.FakeClock
) -> None:
    leader.keeping.reconcile()
    first = bundle(api)
    time.advance((2 * ca.AUTHORITY / 3).total_seconds() + DAY_S)
    leader.keeping.reconcile()
    announced = bundle(api)
    assert announced.following is not None
    assert announced.following.certificate in next(iter(believed(api)))
    time.advance(dt.timedelta(hours=1).total_seconds())
    leader.keeping.reconcile()
    assert bundle(api).authority == announced.following
    assert first.authority.certificate in next(iter(believed(api)))


@pytest.mark.parametrize("damage", ["gone", "empty", "no base64"])
def test_a_secret_that_is_lost_is_written_as_it_was(
    api: api_server.ApiServer, leader: Replica, follower: Replica, damage: str
) -> None:
    leader.keeping.reconcile()
    previous = bundle(api)
    if damage == "gone":
        api.remove(gvr.SECRETS, PLACE.secret, PLACE.namespace)
    else:
        data = {} if damage == "empty" else {"tls.crt": "%%%"}
        api.put(gvr.SECRETS, {**secret(api), "data": data})
    follower.keeping.reconcile()
    leader.keeping.reconcile()
    assert bundle(api) == previous
    assert len(leader.served) == 1
    follower.keeping.reconcile()
    assert follower.served == leader.served


def test_one_of_two_replicas_that_believe_to_lead_wins(
    api: api_server.ApiServer, leader: Replica, kube: client.KubeClient, time: clock.FakeClock
) -> None:
    leader.keeping.reconcile()
    time.advance(61 * DAY_S)
    other = Replica(kube, time)
    stale = secret(api)
    leader.keeping.reconcile()
    with pytest.raises(errors.Conflict):
        other.keeping._write(stale, ca.ensure_bundle(None, PLACE.hosts, time.now()))
    other.keeping.reconcile()
    assert other.served == leader.served[-1:]


def test_a_bundle_that_somebody_else_wrote_is_put_right(
    api: api_server.ApiServer, leader: Replica
) -> None:
    leader.keeping.reconcile()
    result = api.read(KINDS[1], "ration-admission") or {}
    result["webhooks"][0]["clientConfig"]["caBundle"] = "b3RoZXI="
    api.put(KINDS[1], result)
    leader.keeping.reconcile()
    assert believed(api) == {bundle(api).trusted}


def test_without_configurations_the_certificate_is_kept_all_the_same(
    api: api_server.ApiServer, leader: Replica
) -> None:
    for kind in KINDS:
        api.remove(kind, "ration-admission")
    leader.keeping.reconcile()
    assert len(leader.served) == 1


def test_an_api_server_that_is_away_is_waited_for(
    api: api_server.ApiServer, kube: client.KubeClient
) -> None:
    class Stopping(clock.FakeClock):
        def wait(self, event: threading.Event, timeout_s: float) -> bool:
            if len(self.waits) == 1:
                api.up()
            if len(self.waits) == 3:
                event.set()
            return super().wait(event, timeout_s)

    time = Stopping()
    replica = Replica(kube, time)
    api.down()
    replica.keeping.run(threading.Event())
    assert len(replica.served) == 1
    assert time.waits == [1.0, 1.0, 15.0]


@pytest.fixture
def door() -> Iterator[server.Server]:
    result = server.Server((HOST, 0), door_of.Application({}), clocks.SystemClock(), door_of.LIMITS)
    stop = threading.Event()
    thread = threading.Thread(target=result.run, args=(stop,))
    thread.start()
    yield result
    stop.set()
    result.interrupt()
    thread.join(10)


def asked(door: server.Server, trusted: Path) -> int:
    pool = urllib3.HTTPSConnectionPool(HOST, door.port, ca_certs=str(trusted), retries=False)
    with pool:
        return pool.request("GET", "/healthz").status


def test_a_client_that_believes_the_bundle_is_served(
    api: api_server.ApiServer, kube: client.KubeClient, door: server.Server, tmp_path: Path
) -> None:
    time = clocks.SystemClock()
    certificates.SecretCertificates(kube, PLACE, lambda: True, door.use, time).reconcile()
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(next(iter(believed(api))))
    assert door.ready
    assert asked(door, trusted) == 200


def test_files_are_followed_and_a_half_replaced_pair_is_not_served(
    door: server.Server, tmp_path: Path
) -> None:
    authority = trustme.CA()
    trusted, certificate, key = (tmp_path / name for name in ("ca", "tls.crt", "tls.key"))
    authority.cert_pem.write_to_path(trusted)
    followed = cert_files.CertificateFiles(certificate, key, door.use, clocks.SystemClock())
    with pytest.raises(errors.NodeFault, match=r"tls\.crt"):
        followed.reload()
    first, second = authority.issue_cert(HOST), authority.issue_cert(HOST)
    first.cert_chain_pems[0].write_to_path(certificate)
    first.private_key_pem.write_to_path(key)
    followed.reload()
    assert asked(door, trusted) == 200
    second.cert_chain_pems[0].write_to_path(certificate)
    with pytest.raises(errors.BadInput):
        followed.reload()
    assert asked(door, trusted) == 200
    second.private_key_pem.write_to_path(key)
    followed.reload()
    assert followed._served == (certificate.read_bytes(), key.read_bytes())
    assert asked(door, trusted) == 200

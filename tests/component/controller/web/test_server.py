import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
import urllib3

from driver import clock
from driver.controller.web import leader_proxy, ports
from driver.controller.web.auth import guard, token_reviews
from tests.fakes import review_api
from tests.support import web_page

AWAY = web_page.Fixed(
    ports.NotLeader("this replica stands by; leader-0 leads: ask that one", "leader-0")
)
BEARER = {"Authorization": "Bearer good"}


def plain(port: int) -> urllib3.HTTPConnectionPool:
    return urllib3.HTTPConnectionPool(web_page.HOST, port, retries=False, timeout=5)


@pytest.fixture
def port() -> Iterator[int]:
    with web_page.served(web_page.an_application(web_page.Fixed(web_page.a_reading()))) as found:
        yield found


def test_pages_json_and_errors_come_over_a_socket(port: int) -> None:
    client = plain(port)
    asked = {
        "/": (200, "text/html; charset=utf-8"),
        "/api/v1/fleet": (200, "application/json"),
        "/static/page.css": (200, "text/css; charset=utf-8"),
        "/nope": (404, "text/html; charset=utf-8"),
        "/api/v1/nodes?limit=x": (400, "application/json"),
    }
    for path, expected in asked.items():
        answer = client.request("GET", path)
        assert (answer.status, answer.headers["Content-Type"]) == expected
    assert client.request("POST", "/api/v1/fleet", body=b"{}").status == 405


def test_a_head_has_the_headers_and_no_body(port: int) -> None:
    client = plain(port)
    whole = client.request("GET", "/nodes/gpu-1")
    head = client.request("HEAD", "/nodes/gpu-1")
    assert (head.status, head.data) == (200, b"")
    assert head.headers["Content-Length"] == str(len(whole.data))
    assert client.request("GET", "/api/v1/fleet").status == 200


def test_slow_clients_stop_nobody(port: int) -> None:
    """More silent ones, and more that have asked by half, than there are workers."""
    held = [socket.create_connection((web_page.HOST, port), timeout=10) for _ in range(20)]
    for one in held[:3]:
        one.sendall(b"GET / HTTP/1.1\r\nHost: localh")
    for _ in range(10):
        assert plain(port).request("GET", "/api/v1/fleet", timeout=1.5).status == 200
    for one in held:
        one.close()


def test_a_client_that_drips_is_cut_off_at_the_deadline(port: int) -> None:
    time = clock.SystemClock()
    with socket.create_connection((web_page.HOST, port), timeout=10) as one:
        began = time.monotonic()
        one.sendall(b"GET / HTTP/1.1\r\n")
        ended = False
        while not ended and time.monotonic() - began < 10:
            time.wait(threading.Event(), 0.1)
            try:
                one.sendall(b"X")
                one.settimeout(0.01)
                ended = one.recv(1) in {b"", b"H"}
            except TimeoutError:
                continue
            except OSError:
                ended = True
        assert ended
        assert time.monotonic() - began < web_page.LIMITS.deadline_s + 2


def test_headers_and_bodies_without_end_are_refused(port: int) -> None:
    answer = plain(port).request("GET", "/", headers={"X": "x" * (64 << 10)})
    assert answer.status == 413
    body = b"token=" + b"x" * (64 << 10)
    assert plain(port).request("POST", "/login", body=body).status in {404, 413}


def test_with_a_certificate_it_speaks_tls_alone(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = authority.issue_cert(web_page.HOST)
    pair = issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes()
    app = web_page.an_application(web_page.Fixed(web_page.a_reading()))
    with web_page.served(app, pair=pair) as found:
        client = urllib3.HTTPSConnectionPool(
            web_page.HOST, found, ca_certs=str(tmp_path / "ca.pem"), retries=False, timeout=5
        )
        assert client.request("GET", "/api/v1/fleet").status == 200
        with pytest.raises(urllib3.exceptions.HTTPError):
            plain(found).request("GET", "/api/v1/fleet")


def test_a_guarded_page_answers_tokens_alone() -> None:
    api = review_api.Api()
    known = guard.Guard(token_reviews.TokenReviewer(api, clock.SystemClock()), local=False)
    app = web_page.an_application(web_page.Fixed(web_page.a_reading()), known)
    with web_page.served(app) as found:
        client = plain(found)
        assert client.request("GET", "/api/v1/fleet").status == 401
        assert client.request("GET", "/api/v1/fleet", headers=BEARER).status == 200
        api.may = False
        other = {"Authorization": "bearer good"}
        assert client.request("GET", "/api/v1/fleet", headers=other).status == 200  # remembered
        form = urllib3.encode_multipart_formdata({"token": "good"})[0]
        assert client.request("POST", "/login", body=form).status in {400, 401}


def test_a_standby_hands_requests_to_the_leader_with_their_token(tmp_path: Path) -> None:
    """Over TLS, where the leader is known by the certificate that both serve."""
    authority = trustme.CA()
    issued = authority.issue_cert("page.example.com")
    pair = issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes()
    ours, others = tmp_path / "tls.crt", tmp_path / "other.crt"
    ours.write_bytes(pair[0])
    authority.issue_cert("other.example.com").cert_chain_pems[0].write_to_path(others)
    asked = guard.Guard(
        token_reviews.TokenReviewer(review_api.Api(), clock.SystemClock()), local=False
    )
    leading = web_page.an_application(web_page.Fixed(web_page.a_reading()), asked)
    with web_page.served(leading, pair=pair) as leader:

        def standby(certificate: Path, address: str = web_page.HOST) -> urllib3.BaseHTTPResponse:
            forward = leader_proxy.LeaderProxy(lambda: address, leader, certificate)
            with web_page.served(web_page.an_application(AWAY, asked, forward)) as found:
                path = "/api/v1/nodes?mode=mig"
                return plain(found).request("GET", path, headers=BEARER)

        answer = standby(ours)
        assert answer.status == 200
        assert [one["name"] for one in json.loads(answer.data)["items"]] == ["gpu-1"]
        assert standby(others).status == 503
        assert standby(ours, address="").status == 503

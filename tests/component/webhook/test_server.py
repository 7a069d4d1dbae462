import dataclasses
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
import urllib3

from driver import clock, errors
from driver.runtime.https import server
from driver.webhook import admission_review
from driver.webhook import server as door

HOST = "127.0.0.1"
DEADLINE_S = 2.0
LIMITS = dataclasses.replace(door.LIMITS, deadline_s=DEADLINE_S)


class Running:
    """A server with an authority's certificate, and clients of it."""

    def __init__(self, folder: Path, handlers: dict[str, door.Handler]) -> None:
        self.authority = trustme.CA()
        self.trusted = folder / "ca.pem"
        self.authority.cert_pem.write_to_path(self.trusted)
        application = door.Application(handlers)
        self.server = server.Server((HOST, 0), application, clock.SystemClock(), LIMITS)
        self.rotate()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.server.run, args=(self._stop,))
        self._thread.start()

    def rotate(self) -> bytes:
        issued = self.authority.issue_cert(HOST)
        certificate = issued.cert_chain_pems[0].bytes()
        self.server.use(certificate, issued.private_key_pem.bytes())
        return certificate

    def client(self) -> urllib3.HTTPSConnectionPool:
        return urllib3.HTTPSConnectionPool(
            HOST, self.server.port, ca_certs=str(self.trusted), retries=False, timeout=5
        )

    def silent(self) -> socket.socket:
        return socket.create_connection((HOST, self.server.port), timeout=10)

    def handshaken(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=self.trusted)
        return context.wrap_socket(self.silent(), server_hostname=HOST)

    def served(self) -> bytes:
        with self.handshaken() as ssl_socket:
            return ssl_socket.getpeercert(binary_form=True) or b""

    def close(self) -> None:
        self._stop.set()
        self.server.interrupt()
        self._thread.join(10)
        assert not self._thread.is_alive()


def echo(body: bytes) -> tuple[int, bytes]:
    return (200, body) if body else (400, b"empty\n")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    result = Running(tmp_path, {"/echo": echo})
    yield result
    result.close()


def test_it_answers_posts_health_and_nothing_else(running: Running) -> None:
    client = running.client()
    answers = [
        client.request("POST", "/echo", body=b"{}"),
        client.request("POST", "/echo"),
        client.request("GET", "/healthz"),
        client.request("GET", "/echo"),
        client.request("POST", "/other", body=b"{}"),
    ]
    assert [(answer.status, answer.data) for answer in answers] == [
        (200, b"{}"),
        (400, b"empty\n"),
        (200, b"ok\n"),
        (405, b"expected POST\n"),
        (404, b"not found\n"),
    ]
    assert answers[0].headers["Content-Type"] == "application/json"


def test_a_thousand_requests_across_rotations_all_succeed(running: Running) -> None:
    """Run four clients, two of which keep their connections; twenty certificates."""
    failures: list[str] = []
    done = threading.Semaphore(0)

    def ask(*, keeps: bool) -> None:
        client = running.client()
        headers = {} if keeps else {"Connection": "close"}
        for number in range(250):
            body = json.dumps({"number": number}).encode()
            try:
                answer = client.request("POST", "/echo", body=body, headers=headers)
            except urllib3.exceptions.HTTPError as error:
                failures.append(str(error))
            else:
                failures.extend([] if answer.data == body else [f"{answer.status}"])
            done.release()

    threads = [threading.Thread(target=ask, kwargs={"keeps": index < 2}) for index in range(4)]
    for thread in threads:
        thread.start()
    seen = set()
    for _ in range(20):
        for _ in range(50):
            assert done.acquire(timeout=30)
        running.rotate()
        seen.add(running.served())
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(seen) == 20


def test_slow_clients_stop_nobody(running: Running) -> None:
    """Half through the handshake, half a request, and more silent ones than there are threads."""
    greeting = [running.silent() for _ in range(8)]
    for item in greeting:
        item.sendall(b"\x16\x03\x01\x02\x00\x01")
    asking = [running.handshaken() for _ in range(4)]
    for item in asking:
        item.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
    silent = [running.silent() for _ in range(100)]
    client = running.client()
    for _ in range(20):
        answer = client.request("POST", "/echo", body=b"{}", timeout=DEADLINE_S * 3 / 4)
        assert answer.status == 200
    for item in (*silent, *greeting, *asking):
        item.close()


def test_a_client_that_drips_is_cut_off_at_the_deadline(running: Running) -> None:
    time = clock.SystemClock()
    with running.handshaken() as ssl_socket:
        ssl_socket.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        began = time.monotonic()
        ended = False
        while not ended and time.monotonic() - began < 10:
            time.wait(threading.Event(), 0.1)
            try:
                ssl_socket.sendall(b"x")
                ssl_socket.settimeout(0.01)
                ended = ssl_socket.recv(1000) != b"later"
            except TimeoutError:
                continue
            except OSError:
                ended = True
        assert ended
        assert time.monotonic() - began < 3 * DEADLINE_S


def test_a_body_that_is_too_large_is_refused_unread(running: Running) -> None:
    headers = {"Content-Length": str(10 * admission_review.MOST_BYTES)}
    with running.handshaken() as ssl_socket:
        lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
        ssl_socket.sendall(f"POST /echo HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode())
        assert ssl_socket.recv(64).startswith(b"HTTP/1.1 413")


def test_old_tls_and_plain_http_are_turned_away(running: Running) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(running.trusted)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError), running.silent() as plain:
        context.wrap_socket(plain, server_hostname=HOST)
    with running.silent() as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" not in plain.recv(100)
    assert running.client().request("GET", "/healthz").status == 200


def test_a_certificate_that_is_none_changes_nothing(running: Running) -> None:
    previous = running.served()
    issued, other = running.authority.issue_cert(HOST), running.authority.issue_cert(HOST)
    for certificate, key in (
        (b"x", b"y"),
        (issued.cert_chain_pems[0].bytes(), other.private_key_pem.bytes()),
    ):
        with pytest.raises(errors.BadInput):
            running.server.use(certificate, key)
    assert running.served() == previous


def test_without_a_certificate_connections_end_at_once() -> None:
    bare = server.Server((HOST, 0), door.Application({}), clock.SystemClock(), LIMITS)
    assert not bare.ready
    stop = threading.Event()
    thread = threading.Thread(target=bare.run, args=(stop,))
    thread.start()
    with socket.create_connection((HOST, bare.port), timeout=5) as connection:
        assert connection.recv(1) == b""
    stop.set()
    bare.interrupt()
    thread.join(10)


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server((HOST, 0)) as taken, pytest.raises(errors.NodeFault):
        server.Server(
            (HOST, taken.getsockname()[1]), door.Application({}), clock.SystemClock(), LIMITS
        )

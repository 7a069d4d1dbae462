"""Opaque configuration is a user's text: nested as deep as the API server allows, it harms nobody.

The API server takes 10 KiB of it, which is five thousand lists in each other, and hands it to every
reader of claims. Go reads ten thousand; Python's parser gives up at less than one.
"""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driver import clock, ids
from driver.kube import client, gvr, reflector, store
from driver.resources.dra import claims
from tests.fakes import waiting
from tests.support.builders import objects

DEPTH = 5000
QUICK = reflector.Options(settled_s=0.3)
MARK = b'"deep"'


def a_claim(name: str, parameters: Any, version: int) -> bytes:
    """A claim's bytes; `deep` in its parameters stands for so many lists in each other."""
    entry = {"opaque": {"driver": "other.dev", "parameters": {"a": parameters}}}
    claim = objects.a_claim(name, config=[entry])
    claim["metadata"]["resourceVersion"] = str(version)
    return json.dumps(claim).encode().replace(MARK, b"[" * DEPTH + b"]" * DEPTH)


class Door(http.server.BaseHTTPRequestHandler):
    """Two claims in the listing, two more in the watch; in each the first is nested too deeply."""

    def do_GET(self) -> None:
        if "watch=" in self.path:
            bodies = [a_claim("c", "deep", 3), a_claim("d", 1, 4)]
            frames = [b'{"type":"ADDED","object":' + data + b"}\n" for data in bodies]
            return self.answer(b"".join(frames))
        items = b",".join([a_claim("a", "deep", 1), a_claim("b", 1, 2)])
        return self.answer(b'{"metadata":{"resourceVersion":"2"},"items":[' + items + b"]}")

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def kube(tmp_path: Path) -> Iterator[client.KubeClient]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        file = tmp_path / "kubeconfig"
        url = f"http://127.0.0.1:{serving.server_port}"
        entry = {"name": "one", "cluster": {"server": url}, "user": {}}
        context = {"name": "one", "context": {"cluster": "one", "user": "one"}}
        whole = {
            "clusters": [entry],
            "users": [entry],
            "contexts": [context],
            "current-context": "one",
        }
        file.write_text(json.dumps(whole))
        yield client.KubeClient.connect(file, "test")
        serving.shutdown()


def test_a_claim_nested_too_deeply_is_known_and_its_usage_is_unknown(
    kube: client.KubeClient,
) -> None:
    existing: store.Store[claims.Claim] = store.Store()
    source = reflector.ListWatch(kube, gvr.RESOURCE_CLAIMS)
    item = reflector.Reflector(source, existing, claims.parse, clock.SystemClock(), QUICK)
    stop = threading.Event()
    thread = threading.Thread(target=item.run, args=(stop,), daemon=True)
    thread.start()
    waiting.until(lambda: len(existing) == 4 or not thread.is_alive())
    stop.set()
    item.interrupt()
    result = {str(key): claim.spec.unsupported for key, claim in existing.snapshot().items()}
    assert result.keys() == {ids.Key(f"default/{name}") for name in "abcd"}
    assert not result["default/b"]
    assert not result["default/d"]
    for name in "ac":
        assert "nested" in result[f"default/{name}"][0]

import threading
from collections.abc import Iterator

import prometheus_client
import pytest
import urllib3

from driver import errors
from driver.runtime.metrics import server


class Progress:
    """Results of the checks."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self.note: str | None = None

    def check(self) -> str | None:
        return self.problem


@pytest.fixture
def progress() -> Progress:
    return Progress()


@pytest.fixture
def telemetry(progress: Progress) -> Iterator[server.Telemetry]:
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.Counter("things", "Things.", registry=registry).inc(3)
    running = server.Telemetry(
        "127.0.0.1",
        0,
        registry,
        health={"loop": progress.check},
        ready={"synced": lambda: None},
        notes={"gpus": lambda: progress.note},
    )
    stop = threading.Event()
    thread = threading.Thread(target=running.run, args=(stop,), daemon=True)
    thread.start()
    yield running
    stop.set()
    thread.join(2)
    assert not thread.is_alive()


def get(telemetry: server.Telemetry, path: str) -> tuple[int, str]:
    with urllib3.PoolManager(retries=False) as pool:
        answer = pool.request("GET", f"http://127.0.0.1:{telemetry.port}{path}")
        return answer.status, answer.data.decode()


def test_metrics_are_those_of_the_registry(telemetry: server.Telemetry) -> None:
    status, text = get(telemetry, "/metrics")
    assert status == 200
    assert "things_total 3.0" in text


def test_a_note_is_said_with_readiness_and_does_not_end_it(
    telemetry: server.Telemetry, progress: Progress
) -> None:
    assert get(telemetry, "/readyz") == (200, "synced: ok\n")
    progress.note = "one of eight hangs"
    assert get(telemetry, "/readyz") == (200, "synced: ok\ngpus: ok, but one of eight hangs\n")
    assert get(telemetry, "/healthz") == (200, "loop: ok\n")


def test_health_names_what_stands_still(telemetry: server.Telemetry, progress: Progress) -> None:
    assert get(telemetry, "/healthz") == (200, "loop: ok\n")
    progress.problem = "no progress for 90 s"
    assert get(telemetry, "/healthz") == (503, "loop: no progress for 90 s\n")
    assert get(telemetry, "/readyz") == (200, "synced: ok\n")


def test_other_paths_are_not_found(telemetry: server.Telemetry) -> None:
    assert get(telemetry, "/secrets")[0] == 404


def test_a_port_in_use_is_a_clear_error(telemetry: server.Telemetry) -> None:
    registry = prometheus_client.CollectorRegistry()
    with pytest.raises(errors.NodeFault, match=f"127.0.0.1:{telemetry.port}"):
        server.Telemetry("127.0.0.1", telemetry.port, registry, health={}, ready={})

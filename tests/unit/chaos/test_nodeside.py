from pathlib import Path

from tests.chaos import nodeside

MPS = Path("/state/mps")


def test_a_daemon_has_a_file_system_for_sockets_and_another_for_shared_memory() -> None:
    points = [MPS / "run" / "GPU-1" / "pipe", MPS / "shm" / "GPU-1" / "shm"]
    assert nodeside.mounted(points) == {"GPU-1"}


def test_a_record_or_spec_alone_belongs_to_no_claim() -> None:
    assert nodeside.mounted([MPS / "shm" / "GPU-1" / "shm"]) == {"GPU-1, shm alone"}

"""Locks between threads, and between processes."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from driver import clock, errors, ids
from driver.kubeletplugin.host import locks

ONE, TWO = ids.GpuUuid("GPU-1"), ids.GpuUuid("GPU-2")
HOLD = """
import fcntl, sys
with open(sys.argv[1], "ab") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.readline()
"""


def some_locks(folder: Path, wait_s: float = 5.0) -> locks.Locks:
    return locks.Locks(folder, clock.SystemClock(), wait_s)


def test_threads_that_take_gpus_in_any_order_all_get_them(tmp_path: Path) -> None:
    holding = some_locks(tmp_path)
    inside: list[int] = []
    most: list[int] = []

    def work(gpus: tuple[ids.GpuUuid, ...]) -> None:
        for _ in range(20):
            with holding.gpus(gpus):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work, args=(g,)) for g in ((ONE, TWO), (TWO, ONE), (TWO,))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert most == [1] * 60


def test_a_gpu_held_by_another_process_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / f"{ONE}.lock")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with (
            pytest.raises(errors.NodeFault, match=r"GPU-1\.lock.*busy"),
            some_locks(tmp_path, 0.1).gpus([ONE]),
        ):
            pass
        with some_locks(tmp_path, 0.1).gpus([TWO]):
            pass
        other.kill()
    with some_locks(tmp_path, 5.0).gpus([ONE]):
        pass


def test_a_claim_in_hand_is_refused_after_the_wait_and_free_afterwards(tmp_path: Path) -> None:
    holding = some_locks(tmp_path, 0.05)
    uid = ids.ClaimUid("uid-1")
    refused: list[str] = []

    def second() -> None:
        try:
            with holding.claim(uid):
                pass
        except errors.NodeFault as fault:
            refused.append(str(fault))

    with holding.claim(uid):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(timeout=5)
    assert refused == ["lock claim uid-1: was busy for 0.05 s"]
    with holding.claim(uid):
        pass

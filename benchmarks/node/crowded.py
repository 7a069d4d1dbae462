"""The largest claim the API lets through: 32 results, 32 configurations of 10 KiB each."""

import tempfile
import time
from pathlib import Path

from benchmarks import record
from driver.kubeletplugin import ports
from tests.fakes import crowded, gpunode
from tests.support.builders import allocated_claims

ROUNDS = 20


def measure() -> list[record.Figure]:
    """In this process, on devices without steps: what is left is reading, deciding and writing."""
    with tempfile.TemporaryDirectory() as folder:
        process = crowded.node(Path(folder)).process()
        taken = [1000 * _once(process) for _ in range(ROUNDS)]
    return [record.figure("Prepare, 32 results and 32 x 10 KiB of configuration", "ms", taken)]


def _once(process: gpunode.Process) -> float:
    ref = allocated_claims.a_ref()
    started = time.perf_counter()
    answer = process.preparer.prepare(ref, gpunode.never)
    seconds = time.perf_counter() - started
    if not isinstance(answer, ports.Prepared):
        raise TypeError(answer.message)
    process.preparer.unprepare(ref)
    return seconds

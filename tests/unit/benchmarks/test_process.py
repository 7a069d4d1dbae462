"""Tests of what is read of a process that is measured."""

import os
import time

from benchmarks.node import process


def test_processor_time_of_a_process_is_what_it_says_itself() -> None:
    earlier = 1000 * time.process_time()
    measured = process.cpu_ms(os.getpid())
    assert earlier <= measured <= 1000 * time.process_time()

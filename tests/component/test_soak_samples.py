"""Samples of a process that opens a connection and a file, by the soak's sampler."""

import os
import socket
from pathlib import Path

from tests.soak import samples, verdict


def counted() -> verdict.Sample:
    sample = samples.sample(os.getpid(), 0.0, 0)
    assert sample is not None
    return sample


def test_a_connection_is_counted_apart_from_files_and_who_listens_is_a_file(tmp_path: Path) -> None:
    first = counted()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
        (tmp_path / "file").open("w"),
    ):
        second = counted()
    assert (second.fds - first.fds, second.connections - first.connections) == (2, 1)
    third = counted()
    assert (third.fds, third.connections) == (first.fds, first.connections)

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import clock, errors
from driver.kubeletplugin.host import sockets
from driver.kubeletplugin.rpc import unix_server


@pytest.fixture
def path(root: Path) -> Path:
    return sockets.socket_paths(root, "gpu.ration.dev").service


@pytest.fixture
def taken(path: Path) -> Iterator[sockets.InstanceLock]:
    instance_lock = sockets.InstanceLock.acquire(path)
    yield instance_lock
    instance_lock.release()


def listening(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    created = socket.socket(socket.AF_UNIX)
    created.bind(str(path))
    created.listen()
    return created


def served(path: Path) -> unix_server.UnixServer:
    return unix_server.UnixServer(
        "t", path, lambda _: None, unix_server.Settings(1, 0.1, clock.SystemClock())
    )


@pytest.mark.usefixtures("taken")
def test_a_second_instance_is_refused(path: Path) -> None:
    with pytest.raises(errors.NodeFault, match="another instance runs with it"):
        sockets.InstanceLock.acquire(path)


def test_a_released_instance_leaves_nothing_and_can_be_taken_again(path: Path) -> None:
    sockets.InstanceLock.acquire(path).release()
    assert not list(path.parent.iterdir())
    sockets.InstanceLock.acquire(path).release()


def test_a_socket_somebody_listens_on_is_not_taken_over(path: Path) -> None:
    with listening(path) as other:
        inode = path.stat().st_ino
        with pytest.raises(errors.NodeFault, match="another process listens there"):
            served(path).run(threading.Event())
        assert path.stat().st_ino == inode
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))
        other.accept()[0].close()
    assert not sockets.bind_path(path).exists()


def test_a_dead_socket_is_replaced(path: Path) -> None:
    listening(path).close()
    sockets.refuse_if_served(path)
    stop = threading.Event()
    server = served(path)
    thread = threading.Thread(target=server.run, args=(stop,))
    thread.start()
    assert server.serving.wait(5)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
    stop.set()
    thread.join(5)
    assert not path.exists()


def test_a_file_that_is_no_socket_is_left_alone(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(errors.NodeFault, match="serve at"):
        sockets.refuse_if_served(path)
    assert path.read_text() == "mine"


def test_a_server_that_stops_leaves_its_successors_socket(path: Path) -> None:
    stop, server = threading.Event(), served(path)
    thread = threading.Thread(target=server.run, args=(stop,))
    thread.start()
    assert server.serving.wait(5)
    path.unlink()
    with listening(path):
        stop.set()
        thread.join(5)
        assert not thread.is_alive()
        assert path.exists()


def test_a_socket_whose_name_is_the_longest_that_fits_is_served(root: Path) -> None:
    room = sockets.LIMIT - len(os.fsencode(root)) - 1
    path = root / ("s" * room)
    stop, server = threading.Event(), served(path)
    thread = threading.Thread(target=server.run, args=(stop,))
    thread.start()
    assert server.serving.wait(5)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
    stop.set()
    thread.join(5)
    assert not path.exists()

from pathlib import Path

import pytest

from driver import errors
from driver.kubeletplugin.host import sockets

ROOT = Path("/var/lib/kubelet")
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
LONG = "a" * 59 + ".dev"


def test_without_an_instance_the_paths_are_the_fixed_ones() -> None:
    assert sockets.socket_paths(ROOT, "gpu.ration.dev") == sockets.Paths(
        ROOT / "plugins_registry/gpu.ration.dev-reg.sock",
        ROOT / "plugins/gpu.ration.dev/dra.sock",
    )


def test_an_instance_stands_in_both_names() -> None:
    paths = sockets.socket_paths(ROOT, "gpu.ration.dev", UID)
    assert paths.registration.name == f"gpu.ration.dev-{UID}-reg.sock"
    assert paths.service.name == f"dra-{UID}.sock"


@pytest.mark.parametrize("instance", ["", UID])
@pytest.mark.parametrize("driver", ["gpu.ration.dev", LONG])
@pytest.mark.parametrize("length", range(1, 58, 7))
def test_every_path_fits(driver: str, instance: str, length: int) -> None:
    root = Path("/" + "r" * length)
    paths = sockets.socket_paths(root, driver, instance)
    for path in (paths.registration, paths.service):
        assert len(str(path)) <= sockets.LIMIT
        assert len(str(sockets.bind_path(path))) <= sockets.LIMIT
        assert path.is_relative_to(root)


def test_a_path_of_exactly_the_limit_is_kept_and_one_byte_more_is_not() -> None:
    tail = len("/plugins_registry/gpu.ration.dev-reg.sock")
    root = "/" + "r" * (sockets.LIMIT - tail - 1)
    paths = sockets.socket_paths(Path(root), "gpu.ration.dev")
    assert len(str(paths.registration)) == sockets.LIMIT
    with pytest.raises(errors.BadInput):
        sockets.socket_paths(Path(root + "r"), "gpu.ration.dev")


def test_long_paths_of_two_instances_differ_and_are_stable() -> None:
    root = Path("/" + "r" * 30)
    paths = sockets.socket_paths(root, LONG, UID)
    assert paths == sockets.socket_paths(root, LONG, UID)
    other = sockets.socket_paths(root, LONG, UID.replace("0", "1"))
    assert paths.registration != other.registration
    assert paths.service != other.service


def test_a_root_that_is_too_long_is_refused_with_the_numbers() -> None:
    with pytest.raises(errors.BadInput, match=r"has \d+ bytes; expected at most 107"):
        sockets.socket_paths(Path("/" + "r" * 100), "gpu.ration.dev")

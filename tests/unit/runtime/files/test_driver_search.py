from pathlib import Path

import pytest

from driver.runtime.files import driver_search
from tests.fakes import gpunode

FOLDERS = "usr/lib/x86_64-linux-gnu"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return tmp_path / "host"


def looking(host: Path) -> driver_search.Search:
    return driver_search.build_search("auto", host)


def below(host: Path, location: str) -> Path:
    return host / location.lstrip("/")


@pytest.mark.parametrize("location", driver_search.PLACES)
def test_the_driver_is_found_in_each_of_the_places(host: Path, location: str) -> None:
    gpunode.a_driver_root(below(host, location))
    assert looking(host).locate().path == below(host, location)


def test_the_first_of_two_locations_is_taken(host: Path) -> None:
    for entry in reversed(driver_search.PLACES):
        gpunode.a_driver_root(below(host, entry))
        assert looking(host).locate().path == below(host, entry)


def test_a_given_path_is_taken_as_it_is(host: Path) -> None:
    gpunode.a_driver_root(host)
    search = driver_search.build_search(Path("/nowhere/at/all"), host)
    assert search.is_fixed
    assert search.locate().path == Path("/nowhere/at/all")


def test_a_driver_that_comes_later_is_found_then(host: Path) -> None:
    search = looking(host)
    assert search.locate().path == host
    gpunode.a_driver_root(below(host, "/run/nvidia/driver"))
    assert search.root.path == host
    assert search.locate().path == below(host, "/run/nvidia/driver")


def test_the_chosen_place_is_kept_when_a_better_one_comes(host: Path) -> None:
    search = looking(host)
    gpunode.a_driver_root(below(host, "/run/nvidia/driver"))
    search.locate()
    gpunode.a_driver_root(host)
    assert search.locate().path == below(host, "/run/nvidia/driver")


def test_a_place_that_lost_the_driver_is_left_for_one_that_has_it(host: Path) -> None:
    search = looking(host)
    gpunode.a_driver_root(below(host, "/run/nvidia/driver"))
    search.locate()
    below(host, f"/run/nvidia/driver/{FOLDERS}/libnvidia-ml.so.1").unlink()
    assert search.locate().path == below(host, "/run/nvidia/driver")
    gpunode.a_driver_root(below(host, "/usr/local"))
    assert search.locate().path == below(host, "/usr/local")


def test_the_words_name_every_place_and_what_it_lacks(host: Path) -> None:
    (host / FOLDERS).mkdir(parents=True)
    below(host, "/run/nvidia/driver").mkdir(parents=True)
    cut = below(host, "/home/kubernetes/bin/nvidia/lib64")
    cut.mkdir(parents=True)
    (cut / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.580.1")
    words = looking(host).describe()
    assert words.startswith(f"looked in 4 places (seen below {host}): / has no libnvidia-ml.so.1 ")
    assert f"in {FOLDERS}, usr/lib; " in words
    assert "; /run/nvidia/driver has no folder of libraries (usr/lib64, " in words
    assert "; /home/kubernetes/bin/nvidia has no libnvidia-ml.so.1 in lib64, but a link" in words
    assert " to libnvidia-ml.so.580.1, which is not there; /usr/local is not there" in words


def test_links_in_a_circle_are_told_and_do_not_end_the_search(host: Path) -> None:
    (host / "usr").mkdir(parents=True)
    (host / "usr/lib64").symlink_to("lib64")
    gpunode.a_driver_root(below(host, "/usr/local"))
    search = looking(host)
    assert search.locate().path == below(host, "/usr/local")
    assert "/ cannot be read (resolve " in search.describe()


def test_the_host_as_it_is_has_no_prefix_to_tell() -> None:
    assert (
        driver_search.build_search("auto", Path("/"))
        .describe()
        .startswith("looked in 4 places: / ")
    )

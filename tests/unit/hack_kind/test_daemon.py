"""A Docker daemon of our own has all below the cache, and leaves the machine's network alone."""

import os
from pathlib import Path

import pytest

from hack.cluster import errors
from hack.kind import daemon, docker, layout

CACHE = layout.Cache(Path("/cache/kind"))


def test_all_that_it_has_is_below_the_cache() -> None:
    words = daemon.command(CACHE)
    paths = [word.rpartition("=")[2].removeprefix("unix://") for word in words if "/" in word]
    assert len(paths) == 5
    assert all(Path(path).is_relative_to(CACHE.daemon) for path in paths)


def test_it_adds_no_bridge_no_firewall_rule_and_no_forwarding() -> None:
    assert {"--bridge=none", "--iptables=false", "--ip-forward=false"} <= set(daemon.command(CACHE))


def test_its_containers_ask_for_what_the_machine_can_give() -> None:
    words = daemon.command(CACHE)
    assert "--add-runtime=ration=/cache/kind/daemon/runtime" in words
    assert "--default-runtime=ration" in words


def test_a_daemon_of_others_is_not_ended() -> None:
    assert not daemon.stop(docker.Docker(""), CACHE)
    assert not daemon.stop(docker.Docker("unix:///var/run/docker.sock"), CACHE)


def test_a_cache_too_deep_for_a_socket_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "dockerd").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(errors.ClusterError, match="XDG_CACHE_HOME"):
        daemon.start(layout.Cache(Path("/" + "deep/" * 30)))

"""Tests of what is said where Docker, or what it does, fails."""

import errno
import os

import pytest

from hack.cluster import errors
from hack.kind import config, daemon, docker, driver, nodeimages, programs


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("write /x: no space left on device", "the disk is full"),
        ("tar: etc: Cannot mkdir: No space left on device", "the disk is full"),
        ("Bind for 0.0.0.0:80 failed: port is already allocated", "is taken"),
        ("listen tcp 127.0.0.1:80: bind: address already in use", "is taken"),
        ("OCI runtime create failed: unable to apply caps", "DAEMON=1"),
    ],
)
def test_a_failure_that_is_known_is_one_line_that_says_what_to_do(output: str, words: str) -> None:
    failed = errors.CommandFailedError(("kind", "create"), 1, f"a\n{output}\nb")
    message = str(docker.refusal(failed))
    assert words in message
    assert "\n" not in message


def test_a_disk_that_is_full_under_our_own_hands_is_the_same() -> None:
    assert "the disk is full" in str(docker.refusal(OSError(errno.ENOSPC, os.strerror(28))))


def test_a_failure_that_is_not_known_keeps_its_words() -> None:
    failed = errors.CommandFailedError(("kind", "create"), 1, "something else")
    assert docker.refusal(failed) is failed


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("not installed", "apt-get install docker.io"),
        ("Cannot connect to the Docker daemon", "make kind-up DAEMON=1"),
    ],
)
def test_a_missing_daemon_is_reported_with_a_remedy(reason: str, words: str) -> None:
    refusal = daemon.refusal(reason)
    assert words in refusal
    assert "\n" not in refusal


def test_a_docker_that_is_not_there_is_not_installed() -> None:
    assert docker.answers(program="no-such-docker") == "not installed"


@pytest.mark.parametrize(
    ("name", "repository"),
    [
        ("ration:dev", "ration"),
        ("ration", "ration"),
        ("mirror.example:5000/ration", "mirror.example:5000/ration"),
        ("mirror.example:5000/ration:dev", "mirror.example:5000/ration"),
    ],
)
def test_an_image_is_taken_with_and_without_a_tag(name: str, repository: str) -> None:
    assert driver.repository(name) == repository


S = nodeimages.Source


@pytest.mark.parametrize(
    ("question", "built", "legacy", "source"),
    [
        ("mine:1", True, True, S.GIVEN),
        ("", True, False, S.BUILT),
        ("", False, False, S.HUB),
        ("", False, True, S.BUILD),
    ],
)
def test_a_hub_is_not_asked_where_its_node_image_would_not_run(
    question: str, *, built: bool, legacy: bool, source: nodeimages.Source
) -> None:
    host = config.Host(legacy_cgroups=legacy)
    assert nodeimages.source(question, built=built, host=host) is source


@pytest.mark.parametrize(
    ("text", "suffices"),
    [
        ("kind v0.33.0 go1.26.8 linux/amd64", True),
        ("kind v0.40.1 go1.27.0 linux/amd64", True),
        ("kind v0.32.9 go1.26.8 linux/amd64", False),
        ("something else", False),
    ],
)
def test_a_kind_on_path_is_taken_from_the_pinned_version_on(text: str, *, suffices: bool) -> None:
    assert programs.suffices(text, "v0.33.0") is suffices

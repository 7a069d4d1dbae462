"""The image of kind's nodes: given, kind's own from a hub, or built here."""

import select
import shutil
import subprocess
from enum import StrEnum

from hack.cluster import errors, progress, versions
from hack.kind import config, docker, layout, plan
from hack.kind.nodeimage import build

OFFICIAL = (
    "kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5"
)
"""What the pinned kind takes where it is asked for nothing else; its nodes want cgroup v2."""
_FIRST_WORD_S = 20.0
_PULL_S = 900.0


class Source(StrEnum):
    """Where a node image comes from."""

    GIVEN = "the command line"
    BUILT = "an earlier build"
    HUB = "a hub, or a build where it has none"
    BUILD = "a build"


def source(asked: str, *, built: bool, host: config.Host) -> Source:
    """Decide where the node image comes from; `built` if Docker has the one that is built here.

    kind's own is not asked for on a machine with control groups of version 1: its systemd does not
    run there.
    """
    if asked:
        return Source.GIVEN
    if built:
        return Source.BUILT
    return Source.BUILD if host.legacy_cgroups else Source.HUB


def choose(
    asked: str,
    daemon: docker.Docker,
    cache: layout.Cache,
    host: config.Host,
    steps: progress.Steps,
) -> str:
    """The image to create nodes from; pulled or built now if Docker has it not."""
    recipe = build.Recipe(versions.load().default)
    built = daemon.image_label(recipe.image(), build.KEY_LABEL) == recipe.key()
    match source(asked, built=built, host=host):
        case Source.GIVEN:
            return asked
        case Source.BUILT:
            return recipe.image()
        case Source.HUB if _has(daemon, OFFICIAL, steps):
            return OFFICIAL
        case Source.HUB | Source.BUILD:
            pass
    plan.refuse_full_disk_for_build({cache.root: shutil.disk_usage(cache.root).free})
    return build.ensure(recipe, daemon, cache, steps)


def _has(daemon: docker.Docker, image: str, steps: progress.Steps) -> bool:
    if daemon.inspect("image", image):
        return True
    try:
        with steps.step("Pull kind's node image", 60):
            pull(daemon, image)
    except errors.ClusterError as error:
        steps.say(f"    kind's node image cannot be pulled ({error}); it is built here instead")
        return False
    return True


def pull(daemon: docker.Docker, image: str) -> None:
    """Pull an image. A hub that says nothing for 20 s counts as out of reach: a ClusterError."""
    words = (daemon.program, "pull", image)
    with subprocess.Popen(
        words,
        env=daemon.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            text = _first_words(process)
            rest, _ = process.communicate(timeout=_PULL_S)
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            process.kill()
            raise errors.ClusterError("no answer from the hub") from error
    if process.returncode != 0:
        lines = (text + rest).strip().splitlines()
        raise errors.ClusterError(lines[-1] if lines else "docker pull failed")


def _first_words(process: subprocess.Popen[str]) -> str:
    """The first line of output; a TimeoutError if none comes in time."""
    if process.stdout is None:
        return ""
    ready, _, _ = select.select([process.stdout], [], [], _FIRST_WORD_S)
    if not ready:
        raise TimeoutError
    return process.stdout.readline()

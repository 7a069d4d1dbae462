"""Hooks of NVIDIA's `nvidia-cdi-hook` for a driver's files, in the toolkit's order. Pure.

Links first, then forward compatibility, which the loader's cache must see, then that cache; last,
libnvidia-ml is kept from creating device nodes (NV-1). A program gets only the hooks that its
version has: before 1.18.0 an unknown hook ends it, and the container (R-2).
"""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from driver.kubeletplugin.cdi import template

Version = tuple[int, int, int]
_FIRST_VERSIONS: dict[str, Version] = {
    "enable-cuda-compat": (1, 17, 5),
    "disable-device-node-modification": (1, 18, 0),
}
"""The toolkit's first version that has a hook; the others are as old as the program, 1.16.0."""


def build_hooks(
    program: str,
    toolkit: Version,
    driver: str,
    links: Iterable[tuple[str, str]],
    folders: Iterable[str],
) -> tuple[template.Hook, ...]:
    """Return hooks that run `program`, a path of the host, of the version `toolkit`.

    `driver` is the driver's version, `links` are (target, path of the link), `folders` those of
    libraries in the container.
    """
    name = PurePosixPath(program).name
    commands = _commands(driver, tuple(links), tuple(folders))
    fit = (command for command in commands if _FIRST_VERSIONS.get(command[0], toolkit) <= toolkit)
    return tuple(template.Hook(program, (name, *command)) for command in fit)


def _commands(
    version: str, links: tuple[tuple[str, str], ...], folders: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    if links:
        pairs = (("--link", f"{target}::{path}") for target, path in links)
        yield ("create-symlinks", *(argument for pair in pairs for argument in pair))
    yield ("enable-cuda-compat", f"--host-driver-version={version}")
    yield ("update-ldcache", *(argument for folder in folders for argument in ("--folder", folder)))
    yield ("disable-device-node-modification",)

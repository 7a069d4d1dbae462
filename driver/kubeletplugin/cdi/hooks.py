"""The hooks of NVIDIA's `nvidia-cdi-hook` for a driver's files, in the toolkit's order. Pure.

Links first, then forward compatibility, which the loader's cache has to see, then that cache; last,
libnvidia-ml is kept from making device nodes (node-layer §5.3). A toolkit that does not know one of
them warns and goes on.
"""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from driver.kubeletplugin.cdi import template


def hooks(
    program: str, version: str, links: Iterable[tuple[str, str]], folders: Iterable[str]
) -> tuple[template.Hook, ...]:
    """Hooks that run `program`, a path of the host.

    `links` are (target, path of the link), `folders` those of libraries in the container.
    """
    name = PurePosixPath(program).name
    commands = _commands(version, tuple(links), tuple(folders))
    return tuple(template.Hook(program, (name, *command)) for command in commands)


def _commands(
    version: str, links: tuple[tuple[str, str], ...], folders: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    if links:
        pairs = (("--link", f"{target}::{path}") for target, path in links)
        yield ("create-symlinks", *(word for pair in pairs for word in pair))
    yield ("enable-cuda-compat", f"--host-driver-version={version}")
    yield ("update-ldcache", *(word for folder in folders for word in ("--folder", folder)))
    yield ("disable-device-node-modification",)
